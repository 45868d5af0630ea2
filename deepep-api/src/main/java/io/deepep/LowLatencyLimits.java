package io.deepep;

/**
 * The shapes that the low-latency mode of a {@link Buffer} works with. They determine the size of
 * its memory. The same on every rank.
 *
 * @param maxTokens most tokens that a rank dispatches at once (DeepEP's {@code
 *     num_max_dispatch_tokens_per_rank}), 1 to {@value #MAX_TOKENS}
 * @param hidden largest hidden size in elements, a positive multiple of {@value #HIDDEN_MULTIPLE}
 * @param maxTopk most experts that a token selects, 1 to 32
 * @param numExperts experts of all ranks together, a multiple of the number of ranks
 */
public record LowLatencyLimits(int maxTokens, int hidden, int maxTopk, int numExperts) {
    /** Largest {@code maxTokens}. */
    public static final int MAX_TOKENS = 1024;

    /** {@code hidden} is a multiple of this: the channels that have one scale in FP8. */
    public static final int HIDDEN_MULTIPLE = Fp8E4m3.CHANNELS_PER_SCALE;

    /** Validates the numbers. */
    public LowLatencyLimits {
        Numbers.requireIn("maxTokens", maxTokens, 1, MAX_TOKENS);
        if (hidden < 1 || hidden % HIDDEN_MULTIPLE != 0) {
            throw new IllegalArgumentException(
                    "hidden=" + hidden + " is not a positive multiple of " + HIDDEN_MULTIPLE);
        }
        NormalLimits.requireExperts(maxTopk, "numExperts", numExperts);
    }

    /** Experts that each of {@code numRanks} ranks holds. */
    public int numLocalExperts(int numRanks) {
        return numExperts / numRanks;
    }
}
