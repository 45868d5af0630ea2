package io.deepep;

/**
 * The largest shapes that the normal mode of a {@link Buffer} works with. They determine the size
 * of its memory. The same on every rank.
 *
 * @param maxTokens most tokens that a rank dispatches at once
 * @param hidden largest hidden size, in elements, a multiple of 8
 * @param maxTopk most experts that a token selects, 1 to {@value #MAX_TOPK}
 * @param maxExperts most experts of all ranks together
 * @param maxRecvTokens most rows that a rank receives in a dispatch; {@link #WORST_CASE} for {@code
 *     maxTokens * numRanks}, which is always enough. A smaller number saves memory; a dispatch that
 *     would exceed it fails on every rank with a {@link io.deepep.error.CapacityExceededException},
 *     and the buffer stays usable
 */
public record NormalLimits(
        int maxTokens, int hidden, int maxTopk, int maxExperts, int maxRecvTokens) {
    /** Value of {@code maxRecvTokens} that stands for all tokens of all ranks. */
    public static final int WORST_CASE = 0;

    /** Largest {@code maxTopk}. */
    public static final int MAX_TOPK = 32;

    /** Validates the numbers. */
    public NormalLimits {
        Numbers.requirePositive("maxTokens", maxTokens);
        if (hidden < 8 || hidden % 8 != 0) {
            throw new IllegalArgumentException(
                    "hidden=" + hidden + " is not a positive multiple of 8");
        }
        requireExperts(maxTopk, "maxExperts", maxExperts);
        if (maxRecvTokens < 0) {
            throw new IllegalArgumentException(
                    "maxRecvTokens=%s is negative; use WORST_CASE (0) or a positive number"
                            .formatted(maxRecvTokens));
        }
    }

    static void requireExperts(int maxTopk, String name, int numExperts) {
        Numbers.requireIn("maxTopk", maxTopk, 1, MAX_TOPK);
        Numbers.requirePositive(name, numExperts);
    }

    /** Limits that cannot overflow. */
    public static NormalLimits of(int maxTokens, int hidden, int maxTopk, int maxExperts) {
        return new NormalLimits(maxTokens, hidden, maxTopk, maxExperts, WORST_CASE);
    }

    /**
     * Rows each rank has room for among {@code numRanks} ranks.
     *
     * @throws IllegalArgumentException if the number exceeds an {@code int}
     */
    public int recvCapacity(int numRanks) {
        if (maxRecvTokens != WORST_CASE) {
            return maxRecvTokens;
        }
        long rows = (long) maxTokens * numRanks;
        if (rows > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(
                    "maxTokens=%s of each of numRanks=%s are more rows than a buffer can have, %s; lower maxTokens or give maxRecvTokens"
                            .formatted(maxTokens, numRanks, Integer.MAX_VALUE));
        }
        return (int) rows;
    }
}
