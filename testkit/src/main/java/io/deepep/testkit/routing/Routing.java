package io.deepep.testkit.routing;

import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import java.util.Arrays;
import java.util.Set;
import java.util.function.BiPredicate;

/**
 * The global routing of one dispatch: for every rank, which experts its tokens selected and with
 * what weights. Immutable; known to the tests alone, no rank of the library ever sees it whole.
 *
 * <p>Expert {@code e} belongs to rank {@code e / numLocalExperts}. -1 stands for no selection.
 */
public final class Routing {
    private final int numExperts;
    private final int numTopk;
    private final long[][][] topkIdx;
    private final float[][][] weights;

    private Routing(int numExperts, int numTopk, long[][][] topkIdx, float[][][] weights) {
        this.numExperts = numExperts;
        this.numTopk = numTopk;
        this.topkIdx = topkIdx;
        this.weights = weights;
    }

    /**
     * A routing from arrays, which are copied.
     *
     * @param numExperts experts of all ranks, a multiple of the number of ranks
     * @param numTopk selections per token
     * @param topkIdx {@code [rank][token][selection]}: global expert or -1
     * @param weights of the same shape; entries of masked selections are arbitrary
     * @throws IllegalArgumentException if shapes or indices do not fit
     */
    public static Routing of(int numExperts, int numTopk, long[][][] topkIdx, float[][][] weights) {
        int numRanks = topkIdx.length;
        if (numRanks == 0 || numExperts % numRanks != 0 || numExperts < numRanks) {
            throw new IllegalArgumentException(
                    "numExperts=" + numExperts + " is not a multiple of numRanks=" + numRanks);
        }
        if (weights.length != numRanks) {
            throw new IllegalArgumentException(
                    "weights of %s ranks do not go with %s ranks"
                            .formatted(weights.length, numRanks));
        }
        for (int rank = 0; rank < numRanks; rank++) {
            check(rank, numExperts, numTopk, topkIdx[rank], weights[rank]);
        }
        return new Routing(numExperts, numTopk, copy(topkIdx), copy(weights));
    }

    private static void check(
            int rank, int numExperts, int numTopk, long[][] topkIdx, float[][] weights) {
        if (topkIdx.length != weights.length) {
            throw new IllegalArgumentException(
                    "rank %s has %s rows of indices and %s rows of weights"
                            .formatted(rank, topkIdx.length, weights.length));
        }
        for (int token = 0; token < topkIdx.length; token++) {
            if (topkIdx[token].length != numTopk || weights[token].length != numTopk) {
                throw new IllegalArgumentException(
                        "rank %s, token %s does not have numTopk=%s selections"
                                .formatted(rank, token, numTopk));
            }
            for (long expert : topkIdx[token]) {
                if (expert < -1 || expert >= numExperts) {
                    throw new IllegalArgumentException(
                            "rank %s, token %s: expert=%s is not in [-1, %s)"
                                    .formatted(rank, token, expert, numExperts));
                }
            }
        }
    }

    private static long[][][] copy(long[][][] values) {
        return Arrays.stream(values)
                .map(rows -> Arrays.stream(rows).map(long[]::clone).toArray(long[][]::new))
                .toArray(long[][][]::new);
    }

    private static float[][][] copy(float[][][] values) {
        return Arrays.stream(values)
                .map(rows -> Arrays.stream(rows).map(float[]::clone).toArray(float[][]::new))
                .toArray(float[][][]::new);
    }

    /** The same without the tokens of some ranks, and without selections of their experts. */
    public Routing without(Set<Integer> ranks) {
        return without((source, rank) -> ranks.contains(source) || ranks.contains(rank));
    }

    /** The same without the selections, of a source rank's tokens and a rank's experts, given. */
    public Routing without(BiPredicate<Integer, Integer> lost) {
        long[][][] left = copy(topkIdx);
        for (int source = 0; source < numRanks(); source++) {
            for (long[] row : left[source]) {
                for (int k = 0; k < row.length; k++) {
                    boolean absent = row[k] >= 0 && lost.test(source, ownerOf(row[k]));
                    row[k] = absent ? -1 : row[k];
                }
            }
        }
        return new Routing(numExperts, numTopk, left, weights);
    }

    /** The same with the first {@code number} tokens of each rank, or all if it has fewer. */
    public Routing first(int number) {
        return new Routing(
                numExperts,
                numTopk,
                Arrays.stream(topkIdx)
                        .map(rows -> Arrays.copyOf(rows, Math.min(number, rows.length)))
                        .toArray(long[][][]::new),
                Arrays.stream(weights)
                        .map(rows -> Arrays.copyOf(rows, Math.min(number, rows.length)))
                        .toArray(float[][][]::new));
    }

    /** R. */
    public int numRanks() {
        return topkIdx.length;
    }

    /** E: experts of all ranks together. */
    public int numExperts() {
        return numExperts;
    }

    /** Experts of each rank. */
    public int numLocalExperts() {
        return numExperts / numRanks();
    }

    /** K: selections per token. */
    public int numTopk() {
        return numTopk;
    }

    /** T of one rank. */
    public int numTokens(int rank) {
        return topkIdx[rank].length;
    }

    /** The largest T of any rank. */
    public int maxTokens() {
        return Arrays.stream(topkIdx).mapToInt(rows -> rows.length).max().orElseThrow();
    }

    /** The global expert of a selection, or -1. */
    public long expert(int rank, int token, int selection) {
        return topkIdx[rank][token][selection];
    }

    /** The weight of a selection; arbitrary where the expert is -1. */
    public float weight(int rank, int token, int selection) {
        return weights[rank][token][selection];
    }

    /** A copy of one rank's indices, [T][K]. */
    public long[][] topkIdx(int rank) {
        return Arrays.stream(topkIdx[rank]).map(long[]::clone).toArray(long[][]::new);
    }

    /** A copy of one rank's weights, [T][K]. */
    public float[][] weights(int rank) {
        return Arrays.stream(weights[rank]).map(float[]::clone).toArray(float[][]::new);
    }

    /** One rank's indices as a dispatch takes them, I64 [T,K] on the host. */
    public Tensor topkIdxTensor(int rank) {
        return HostTensors.i64(topkIdx[rank], numTopk);
    }

    /** One rank's weights as a dispatch takes them, F32 [T,K] on the host. */
    public Tensor weightsTensor(int rank) {
        return HostTensors.f32(weights[rank], numTopk);
    }

    /** The rank that holds {@code expert}, or -1 for no selection. */
    public int ownerOf(long expert) {
        return expert < 0 ? -1 : (int) (expert / numLocalExperts());
    }

    /** The index of {@code expert} at {@code owner}, or -1 if it is not one of its experts. */
    public int localExpert(long expert, int owner) {
        return ownerOf(expert) == owner ? (int) (expert % numLocalExperts()) : -1;
    }

    /** Whether a token selects at least one expert of {@code destination}. */
    public boolean goesTo(int rank, int token, int destination) {
        for (long expert : topkIdx[rank][token]) {
            if (ownerOf(expert) == destination) {
                return true;
            }
        }
        return false;
    }

    /** [R][R] tokens of the first rank that go to the second, each counted once. */
    public int[][] tokensPerRank() {
        int[][] tokens = new int[numRanks()][numRanks()];
        for (int src = 0; src < numRanks(); src++) {
            for (int token = 0; token < numTokens(src); token++) {
                for (int rank = 0; rank < numRanks(); rank++) {
                    tokens[src][rank] += goesTo(src, token, rank) ? 1 : 0;
                }
            }
        }
        return tokens;
    }

    /** [R][R] selections of the second rank's experts by tokens of the first. */
    public int[][] selectionsPerRank() {
        int[][] selections = new int[numRanks()][numRanks()];
        for (int src = 0; src < numRanks(); src++) {
            for (long[] row : topkIdx[src]) {
                for (long expert : row) {
                    if (expert >= 0) {
                        selections[src][ownerOf(expert)]++;
                    }
                }
            }
        }
        return selections;
    }

    /** [R] tokens that each rank receives. */
    public int[] receivedTokens() {
        int[] received = new int[numRanks()];
        for (int[] ofSource : tokensPerRank()) {
            Arrays.setAll(received, rank -> received[rank] + ofSource[rank]);
        }
        return received;
    }
}
