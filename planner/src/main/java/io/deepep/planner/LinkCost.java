package io.deepep.planner;

/**
 * What a kind of link costs: a fixed time, then bytes at a rate.
 *
 * @param fixedMicros launch, headers, flags and latency of an operation that moves nothing
 * @param bytesPerSecond of a rank in one direction, while it receives as much
 */
public record LinkCost(double fixedMicros, double bytesPerSecond) {
    private static final double MICROS_PER_SECOND = 1e6;

    /** The time for so many bytes. */
    public double micros(double bytes) {
        return fixedMicros + bytes / bytesPerSecond * MICROS_PER_SECOND;
    }
}
