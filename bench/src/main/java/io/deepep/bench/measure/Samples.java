package io.deepep.bench.measure;

import io.deepep.bench.run.RankTeam;
import java.util.Arrays;
import java.util.function.LongSupplier;

/** Durations of one operation, each that of the slowest rank, in nanoseconds. */
public final class Samples {
    private static final double NANOS_PER_MICRO = 1e3;

    private final long[] sorted;

    private Samples(long[] sorted) {
        this.sorted = sorted;
    }

    /** Samples from durations in any order. */
    public static Samples of(long... nanos) {
        if (nanos.length == 0) {
            throw new IllegalArgumentException("no samples");
        }
        long[] sorted = nanos.clone();
        Arrays.sort(sorted);
        return new Samples(sorted);
    }

    /**
     * Whether it can be the time of a sample, in microseconds: not in what no clock has measured.
     */
    public static boolean isTime(double micros) {
        return micros > 0 && micros <= Long.MAX_VALUE / NANOS_PER_MICRO;
    }

    /** Measures an operation that is collective over the team. */
    public static Samples measure(
            RankTeam team, int warmups, int repeats, RankTeam.Work operation) {
        return measure(
                warmups,
                repeats,
                () -> {
                    team.run(operation);
                    return team.slowestNanos();
                });
    }

    /** Measures what says itself how many nanoseconds it took. */
    public static Samples measure(int warmups, int repeats, LongSupplier operation) {
        long[] nanos = new long[repeats];
        for (int i = -warmups; i < repeats; i++) {
            long spent = operation.getAsLong();
            if (i >= 0) {
                nanos[i] = spent;
            }
        }
        return of(nanos);
    }

    /** How many. */
    public int count() {
        return sorted.length;
    }

    /**
     * The smallest duration that {@code percent} of the samples do not exceed (nearest rank), in
     * microseconds.
     */
    public double percentileMicros(double percent) {
        if (!(percent > 0 && percent <= 100)) {
            throw new IllegalArgumentException("percent=" + percent + " is not in (0, 100]");
        }
        int rank = (int) Math.ceil(percent * sorted.length / 100);
        return sorted[Math.max(rank, 1) - 1] / NANOS_PER_MICRO;
    }

    /** The longest, in microseconds. */
    public double maxMicros() {
        return sorted[sorted.length - 1] / NANOS_PER_MICRO;
    }

    /** Bytes per second at the median. */
    public double bytesPerSecond(long bytes) {
        return bytes / (percentileMicros(50) * 1e-6);
    }
}
