package io.deepep.planner;

/** What links cost on one kind of machine with one library. Its text is its name. */
public sealed interface Profile permits KnownProfile, MeasuredProfile {
    /**
     * The costs of one operation.
     *
     * @param nvlinkMicros fixed time where NVLink is waited for
     * @param nvlinkBytesPerSecond of a rank in one direction
     * @param rdmaMicros fixed time where RDMA is waited for
     * @param rdmaShare of its NICs' line rate that a rank gets
     */
    record Costs(
            double nvlinkMicros,
            double nvlinkBytesPerSecond,
            double rdmaMicros,
            double rdmaShare) {}

    /**
     * What one operation costs.
     *
     * @throws IllegalArgumentException if it is not known
     */
    Costs costs(Mode mode, Op op);
}
