package io.deepep.planner;

/**
 * The costs of links on one kind of machine with one library. {@code toString} returns the name.
 */
public sealed interface Profile permits KnownProfile, MeasuredProfile {
    /**
     * The costs of one operation.
     *
     * @param nvlinkMicros fixed time over NVLink, in microseconds
     * @param nvlinkBytesPerSecond bytes per second of a rank over NVLink in one direction
     * @param rdmaMicros fixed time over RDMA, in microseconds
     * @param rdmaShare the fraction of the line rate of its NICs that a rank gets
     */
    record Costs(
            double nvlinkMicros,
            double nvlinkBytesPerSecond,
            double rdmaMicros,
            double rdmaShare) {}

    /**
     * The costs of one operation.
     *
     * @throws IllegalArgumentException if they are not known
     */
    Costs costs(Mode mode, Op op);
}
