package io.deepep;

/**
 * The shapes that the low-latency mode of a {@link Buffer} works with. They determine the size of
 * its memory. The same on every rank.
 *
 * @param maxTokens most tokens that a rank dispatches at once (DeepEP's {@code
 *     num_max_dispatch_tokens_per_rank}), 1 to {@value #MAX_TOKENS}
 * @param hidden hidden size in elements, a positive multiple of 128
 * @param numExperts experts of all ranks together, a multiple of the number of ranks
 * @param maxTopk most experts that a token selects, 1 to 32
 */
public record LowLatencyLimits(int maxTokens, int hidden, int numExperts, int maxTopk) {
    /** Largest {@code maxTokens}. */
    public static final int MAX_TOKENS = 1024;

    /** Validates the numbers. */
    public LowLatencyLimits {
        if (maxTokens < 1 || maxTokens > MAX_TOKENS) {
            throw new IllegalArgumentException(
                    "maxTokens=" + maxTokens + " is not in [1, " + MAX_TOKENS + "]");
        }
        if (hidden < 128 || hidden % 128 != 0) {
            throw new IllegalArgumentException(
                    "hidden=" + hidden + " is not a positive multiple of 128");
        }
        if (numExperts < 1) {
            throw new IllegalArgumentException("numExperts=" + numExperts + " must be at least 1");
        }
        if (maxTopk < 1 || maxTopk > NormalLimits.MAX_TOPK) {
            throw new IllegalArgumentException(
                    "maxTopk=" + maxTopk + " is not in [1, " + NormalLimits.MAX_TOPK + "]");
        }
    }

    /** Experts that each of {@code numRanks} ranks holds. */
    public int numLocalExperts(int numRanks) {
        return numExperts / numRanks;
    }
}
