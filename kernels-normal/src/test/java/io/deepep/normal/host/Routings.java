package io.deepep.normal.host;

import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.Tensor;
import java.lang.foreign.Arena;
import java.util.Random;

/**
 * Random routings of a whole group and the values that go with them, each a function of (rank,
 * token, place) so that a receiver can say what it must have got.
 */
final class Routings {
    private final int numRanks;
    private final int numExperts;
    private final int numTopk;
    private final int[] numTokens;
    private final long[][] topkIdx;

    private Routings(int numRanks, int numExperts, int numTopk, int[] numTokens, long[][] topkIdx) {
        this.numRanks = numRanks;
        this.numExperts = numExperts;
        this.numTopk = numTopk;
        this.numTokens = numTokens;
        this.topkIdx = topkIdx;
    }

    int numRanks() {
        return numRanks;
    }

    int numExperts() {
        return numExperts;
    }

    int numTopk() {
        return numTopk;
    }

    int numTokens(int rank) {
        return numTokens[rank];
    }

    static Routings random(long seed, int numRanks, int numExperts, int numTopk, int maxTokens) {
        Random random = new Random(seed);
        int[] numTokens = new int[numRanks];
        long[][] topkIdx = new long[numRanks][];
        for (int rank = 0; rank < numRanks; rank++) {
            numTokens[rank] = random.nextInt(4) == 0 ? 0 : random.nextInt(maxTokens + 1);
            topkIdx[rank] = new long[numTokens[rank] * numTopk];
            boolean skewed = random.nextBoolean();
            for (int i = 0; i < topkIdx[rank].length; i++) {
                int range = skewed ? Math.max(1, numExperts / 4) : numExperts;
                topkIdx[rank][i] = random.nextInt(5) == 0 ? -1 : random.nextInt(range);
            }
        }
        return new Routings(numRanks, numExperts, numTopk, numTokens, topkIdx);
    }

    int numLocalExperts() {
        return numExperts / numRanks;
    }

    long expert(int rank, int token, int k) {
        return topkIdx[rank][token * numTopk + k];
    }

    boolean goesTo(int rank, int token, int destination) {
        for (int k = 0; k < numTopk; k++) {
            long expert = expert(rank, token, k);
            if (expert >= 0 && expert / numLocalExperts() == destination) {
                return true;
            }
        }
        return false;
    }

    int numDestinations(int rank, int token) {
        int count = 0;
        for (int destination = 0; destination < numRanks; destination++) {
            count += goesTo(rank, token, destination) ? 1 : 0;
        }
        return count;
    }

    /** Tokens with indices and weights. */
    DispatchPlan.Builder plan(int rank, int hidden) {
        return DispatchPlan.builder(tokens(rank, hidden))
                .topk(topkIdxTensor(rank), weightsTensor(rank), numExperts);
    }

    Tensor topkIdxTensor(int rank) {
        Tensor tensor = Tensor.allocate(Arena.ofAuto(), DType.I64, numTokens[rank], numTopk);
        for (int i = 0; i < topkIdx[rank].length; i++) {
            tensor.setLong(topkIdx[rank][i], i / numTopk, i % numTopk);
        }
        return tensor;
    }

    Tensor weightsTensor(int rank) {
        Tensor tensor = Tensor.allocate(Arena.ofAuto(), DType.F32, numTokens[rank], numTopk);
        for (int i = 0; i < topkIdx[rank].length; i++) {
            tensor.setFloat(weight(rank, i / numTopk, i % numTopk), i / numTopk, i % numTopk);
        }
        return tensor;
    }

    /** Small whole numbers: their sums are exact in BF16. */
    static float value(int rank, int token, int channel) {
        return (rank * 7 + token * 3 + channel) % 9 - 4;
    }

    static float weight(int rank, int token, int k) {
        return 1 + (rank + token * 5 + k * 3) % 8;
    }

    /** Tokens whose rows lie apart. */
    Tensor tokens(int rank, int hidden) {
        Tensor wide = Tensor.allocate(Arena.ofAuto(), DType.BF16, numTokens[rank] + 1, hidden + 24);
        Tensor x = wide.slice(1, 8, hidden).slice(0, 0, numTokens[rank]);
        for (int token = 0; token < numTokens[rank]; token++) {
            for (int h = 0; h < hidden; h++) {
                x.setFloat(value(rank, token, h), token, h);
            }
        }
        return x;
    }
}
