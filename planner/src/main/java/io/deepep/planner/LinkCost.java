package io.deepep.planner;

/**
 * The cost of an operation over a kind of link: a fixed time, then bytes at a rate.
 *
 * @param fixedMicros microseconds of an operation that moves no rows: launch, headers, flags,
 *     latency
 * @param bytesPerSecond bytes per second of a rank in one direction, while it receives as much
 */
public record LinkCost(double fixedMicros, double bytesPerSecond) {
    private static final double MICROS_PER_SECOND = 1e6;

    /** The time for {@code bytes}, in microseconds. */
    public double micros(double bytes) {
        return fixedMicros + bytes / bytesPerSecond * MICROS_PER_SECOND;
    }
}
