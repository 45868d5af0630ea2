package io.deepep.lowlatency.host;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Bf16;
import io.deepep.DType;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.oracle.LowLatencyCheck;
import io.deepep.testkit.oracle.LowLatencyOracle;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.Tokens;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/** The tokens and the routing of all ranks, and what must come of them. */
record Batch(LowLatencyOracle oracle, List<Tokens> tokens, LowLatencyLimits limits) {
    /** How a selection is drawn. */
    interface Gate {
        long expert(Random random, int rank, int token, int k);
    }

    private static Batch of(
            LowLatencyLimits limits, int[] numTokens, int numTopk, long seed, Gate gate) {
        int numRanks = numTokens.length;
        long[][][] topkIdx = new long[numRanks][][];
        float[][][] weights = new float[numRanks][][];
        List<Tokens> tokens = new ArrayList<>();
        Random random = new Random(seed);
        for (int rank = 0; rank < numRanks; rank++) {
            topkIdx[rank] = new long[numTokens[rank]][numTopk];
            weights[rank] = new float[numTokens[rank]][numTopk];
            Tensor x = HostTensors.allocate(DType.BF16, numTokens[rank], limits.hidden());
            for (int token = 0; token < numTokens[rank]; token++) {
                for (int c = 0; c < limits.hidden(); c++) {
                    x.setFloat((float) random.nextGaussian() + rank, token, c);
                }
                for (int k = 0; k < numTopk; k++) {
                    topkIdx[rank][token][k] = gate.expert(random, rank, token, k);
                    weights[rank][token][k] = random.nextFloat();
                }
            }
            tokens.add(new Tokens(x, null));
        }
        Routing routing = Routing.of(limits.numExperts(), numTopk, topkIdx, weights);
        return new Batch(new LowLatencyOracle(routing), tokens, limits);
    }

    /** Random token counts and routing: a fifth of the selections empty, some repeated. */
    static Batch random(LowLatencyLimits limits, int numRanks, int numTopk, long seed) {
        Random random = new Random(seed);
        int[] numTokens = new int[numRanks];
        for (int rank = 0; rank < numRanks; rank++) {
            numTokens[rank] = random.nextInt(limits.maxTokens() + 1);
        }
        int[] count = new int[limits.numExperts()];
        int[] last = {-1};
        return of(
                limits,
                numTokens,
                numTopk,
                seed,
                (draw, rank, token, k) -> {
                    if (token == 0 && k == 0) {
                        Arrays.fill(count, 0);
                    }
                    int expert = draw.nextInt(limits.numExperts());
                    if (k > 0 && last[0] >= 0 && draw.nextInt(8) == 0) {
                        expert = last[0];
                    }
                    boolean none = draw.nextInt(5) == 0 || count[expert] == limits.maxTokens();
                    last[0] = none ? -1 : expert;
                    if (!none) {
                        count[expert]++;
                    }
                    return last[0];
                });
    }

    /**
     * {@code numTokens} tokens on every rank, selection k of a token to expert token + rank + k.
     */
    static Batch cyclic(LowLatencyLimits limits, int numRanks, int numTokens, int numTopk) {
        int[] all = new int[numRanks];
        Arrays.fill(all, numTokens);
        return of(
                limits,
                all,
                numTopk,
                1,
                (random, rank, token, k) -> (token + rank + k) % limits.numExperts());
    }

    private Routing routing() {
        return oracle.routing();
    }

    Tensor x(int rank) {
        return tokens.get(rank).x();
    }

    Tensor topkIdx(int rank) {
        return routing().topkIdxTensor(rank);
    }

    Tensor weights(int rank) {
        return routing().weightsTensor(rank);
    }

    /** A dispatch; here empty ranges too have a place. */
    void verifyDispatch(int rank, LowLatencyFormat format, LowLatencyDispatchResult result) {
        new LowLatencyCheck(oracle, tokens, format, limits.maxTokens())
                .checkDispatch(rank, result, tensor -> tensor);
        for (int expert = 0; expert < routing().numLocalExperts(); expert++) {
            for (int source = 0; source < routing().numRanks(); source++) {
                assertThat(result.handle().layoutRange().getLong(expert, source) >> 32)
                        .isEqualTo(oracle.beginOf(rank, expert, source));
            }
        }
    }

    /** The sum when every expert returns what it got. */
    void verifyEcho(int rank, Tensor combined) {
        int numTokens = routing().numTokens(rank);
        assertThat(combined.shape()).containsExactly(numTokens, limits.hidden());
        for (int token = 0; token < numTokens; token++) {
            for (int c = 0; c < limits.hidden(); c++) {
                assertThat(combined.getFloat(token, c)).isEqualTo(echo(rank, token, c));
            }
        }
    }

    private float echo(int rank, int token, int c) {
        float sum = 0;
        for (int k = 0; k < routing().numTopk(); k++) {
            if (routing().expert(rank, token, k) >= 0) {
                sum += routing().weight(rank, token, k) * x(rank).getFloat(token, c);
            }
        }
        return Bf16.toFloat(Bf16.fromFloat(sum));
    }
}
