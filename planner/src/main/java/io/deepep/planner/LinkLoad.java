package io.deepep.planner;

import java.util.Arrays;

/**
 * The rows that all tokens put on one kind of link.
 *
 * @param mean rows that a rank sends (and receives) on average
 * @param max rows that the busiest rank sends or receives, whichever is more
 */
public record LinkLoad(double mean, double max) {
    /**
     * The load of all tokens, from a sample of them.
     *
     * @param out rows that each rank's sampled tokens send
     * @param in rows that each rank receives of them
     * @param fraction of the tokens that is in the sample, up to 1
     */
    static LinkLoad of(long[] out, long[] in, double fraction) {
        double mean = mean(out) / fraction;
        return new LinkLoad(mean, Math.max(max(out, fraction), max(in, fraction)));
    }

    /**
     * The largest of such counts if all tokens were counted.
     *
     * <p>In a sample chance makes ranks more different than they are: its share of the variance, at
     * most that of a Poisson count, falls with the number of tokens; what the routing itself makes
     * different stays. The largest deviation is shrunk as the standard deviation is.
     */
    static double max(long[] counts, double fraction) {
        double mean = mean(counts);
        double largest = Arrays.stream(counts).max().orElseThrow();
        double variance =
                Arrays.stream(counts).mapToDouble(c -> (c - mean) * (c - mean)).sum()
                        / counts.length;
        if (variance == 0) {
            return largest / fraction;
        }
        double chance = Math.min(variance, mean);
        double shrink = Math.sqrt((variance - chance + chance * fraction) / variance);
        return (mean + shrink * (largest - mean)) / fraction;
    }

    /** The load of so many bytes each. */
    LinkLoad times(long bytes) {
        return new LinkLoad(mean * bytes, max * bytes);
    }

    private static double mean(long[] counts) {
        return Arrays.stream(counts).average().orElseThrow();
    }
}
