package io.deepep.lowlatency.host;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Bf16;
import io.deepep.DType;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.Random;

/**
 * The tokens and the routing of all ranks, and what must come of them, by plain loops over the
 * whole. Every value of a token tells its rank and index.
 */
final class Batch {
    private final int numRanks;
    private final int numLocalExperts;
    private final LowLatencyLimits limits;
    private final Tensor[] x;
    private final Tensor[] topkIdx;
    private final Tensor[] weights;

    /** How a selection is drawn. */
    interface Gate {
        long expert(Random random, int rank, int token, int k);
    }

    Batch(LowLatencyLimits limits, int[] numTokens, int numTopk, long seed, Gate gate) {
        this.limits = limits;
        this.numRanks = numTokens.length;
        this.numLocalExperts = limits.numLocalExperts(numRanks);
        x = new Tensor[numRanks];
        topkIdx = new Tensor[numRanks];
        weights = new Tensor[numRanks];
        Random random = new Random(seed);
        for (int rank = 0; rank < numRanks; rank++) {
            fill(rank, numTokens[rank], numTopk, random, gate);
        }
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
        return new Batch(
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
        return new Batch(
                limits,
                all,
                numTopk,
                1,
                (random, rank, token, k) -> (token + rank + k) % limits.numExperts());
    }

    private void fill(int rank, int numTokens, int numTopk, Random random, Gate gate) {
        Arena arena = Arena.ofAuto();
        x[rank] = Tensor.allocate(arena, DType.BF16, numTokens, limits.hidden());
        topkIdx[rank] = Tensor.allocate(arena, DType.I64, numTokens, numTopk);
        weights[rank] = Tensor.allocate(arena, DType.F32, numTokens, numTopk);
        for (int token = 0; token < numTokens; token++) {
            for (int c = 0; c < limits.hidden(); c++) {
                x[rank].setFloat((float) random.nextGaussian() + rank, token, c);
            }
            for (int k = 0; k < numTopk; k++) {
                topkIdx[rank].setLong(gate.expert(random, rank, token, k), token, k);
                weights[rank].setFloat(random.nextFloat(), token, k);
            }
        }
    }

    int numTokens(int rank) {
        return (int) x[rank].size(0);
    }

    Tensor x(int rank) {
        return x[rank];
    }

    Tensor topkIdx(int rank) {
        return topkIdx[rank];
    }

    Tensor weights(int rank) {
        return weights[rank];
    }

    /** A BF16 dispatch. */
    void verifyDispatch(int rank, LowLatencyDispatchResult result) {
        for (int expert = 0; expert < numLocalExperts; expert++) {
            int row = 0;
            for (int source = 0; source < numRanks; source++) {
                int begin = row;
                row = verifySource(rank, expert, source, row, result);
                assertThat(result.handle().layoutRange().getLong(expert, source))
                        .isEqualTo(((long) begin << 32) | (row - begin));
            }
            assertThat(result.recvCount().getLong(expert)).isEqualTo(row);
        }
    }

    private int verifySource(
            int rank, int expert, int source, int firstRow, LowLatencyDispatchResult result) {
        int row = firstRow;
        Tensor topk = topkIdx[source];
        for (int token = 0; token < numTokens(source); token++) {
            for (int k = 0; k < topk.size(1); k++) {
                if (topk.getLong(token, k) == (long) rank * numLocalExperts + expert) {
                    assertThat(result.handle().srcInfo().getLong(expert, row)).isEqualTo(token);
                    Tensor got = result.recvX().select(0, expert).select(0, row);
                    Tensor sent = x[source].select(0, token);
                    assertThat(
                                    got.segment()
                                            .asSlice(0, 2L * limits.hidden())
                                            .mismatch(
                                                    sent.segment()
                                                            .asSlice(0, 2L * limits.hidden())))
                            .as("rank %s expert %s row %s", rank, expert, row)
                            .isEqualTo(-1);
                    row++;
                }
            }
        }
        return row;
    }

    /** The sum when every expert returns what it got. */
    void verifyEcho(int rank, Tensor combined) {
        assertThat(combined.shape()).containsExactly(numTokens(rank), limits.hidden());
        for (int token = 0; token < numTokens(rank); token++) {
            for (int c = 0; c < limits.hidden(); c++) {
                assertThat(combined.getFloat(token, c)).isEqualTo(echo(rank, token, c));
            }
        }
    }

    private float echo(int rank, int token, int c) {
        float sum = 0;
        for (int k = 0; k < topkIdx[rank].size(1); k++) {
            long expert = topkIdx[rank].getLong(token, k);
            if (expert >= 0) {
                sum += weights[rank].getFloat(token, k) * x[rank].getFloat(token, c);
            }
        }
        return Bf16.toFloat(Bf16.fromFloat(sum));
    }
}
