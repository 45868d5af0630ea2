package io.deepep.lowlatency;

import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The experts that a rank's tokens select, and whose they are.
 *
 * @param topkIdx I64 [T,K], in host memory
 * @param numTokens T
 * @param numTopk K
 * @param numLocalExperts El
 * @param numRanks R
 */
public record Selections(
        MemorySegment topkIdx, int numTokens, int numTopk, int numLocalExperts, int numRanks) {
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;

    /** Of a plan's tensor, which {@code memory} holds or a copy of it. */
    public static Selections of(
            Tensor topkIdx, MemorySegment memory, LowLatencyLimits limits, int numRanks) {
        return new Selections(
                memory,
                (int) topkIdx.size(0),
                (int) topkIdx.size(1),
                limits.numLocalExperts(numRanks),
                numRanks);
    }

    /** The rank of a selected expert, or -1: of a call that failed, it may be any number. */
    public int rankOf(int token, int k) {
        long expert = topkIdx.get(LONG, 8 * ((long) token * numTopk + k));
        boolean exists = expert >= 0 && expert < (long) numLocalExperts * numRanks;
        return exists ? (int) expert / numLocalExperts : -1;
    }

    /** Whether no earlier selection of the token is of the same rank. */
    public boolean isFirstOfRank(int token, int k) {
        int rank = rankOf(token, k);
        for (int earlier = 0; earlier < k; earlier++) {
            if (rankOf(token, earlier) == rank) {
                return false;
            }
        }
        return true;
    }

    /** [R] Selections of each rank's experts, or the tokens that have such. */
    public int[] perRank(boolean tokens) {
        int[] rows = new int[numRanks];
        for (int token = 0; token < numTokens; token++) {
            for (int k = 0; k < numTopk; k++) {
                int rank = rankOf(token, k);
                if (rank >= 0 && (!tokens || isFirstOfRank(token, k))) {
                    rows[rank]++;
                }
            }
        }
        return rows;
    }
}
