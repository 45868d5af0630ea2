package io.deepep.normal.host;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Event;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.spi.Operation;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class HostNormalTest {
    private static final int HIDDEN = 136;
    private static final int MAX_TOKENS = 40;

    private static NormalLimits limits(int numTopk, int numExperts) {
        return NormalLimits.of(MAX_TOKENS, HIDDEN + 120, numTopk, numExperts);
    }

    @ParameterizedTest(name = "{0}x{1}")
    @CsvSource({"1, 1", "1, 2", "1, 8", "2, 1", "2, 2", "3, 4", "2, 8"})
    void tokensGoOutAndComeHome(int numNodes, int numNvlRanks) throws Exception {
        int numRanks = numNodes * numNvlRanks;
        RankGroup group = RankGroup.of(numNodes, numNvlRanks, limits(5, 4 * numRanks));
        group.run(
                rank -> {
                    for (long seed = 0; seed < 6; seed++) {
                        Routings routings =
                                Routings.random(
                                        seed,
                                        numRanks,
                                        4 * numRanks,
                                        1 + (int) seed % 5,
                                        MAX_TOKENS);
                        roundTrip(routings, rank);
                    }
                });
    }

    private static void roundTrip(Routings routings, Rank rank) {
        DispatchPlan plan = routings.plan(rank.rank(), HIDDEN).build();
        Operation<DispatchResult> operation = rank.kernels().prepareDispatch(plan);
        for (int run = 0; run < 2; run++) {
            DispatchResult got = Rank.run(operation);
            checkReceived(routings, rank.rank(), got);
            checkCombined(routings, rank, got, got.recvX());
            Tensor filled = rank.kernels().combineBuffer(got.handle());
            copy(got.recvX(), filled);
            checkCombined(routings, rank, got, filled);
            DispatchResult cached =
                    rank.dispatch(
                            DispatchPlan.builder(plan.x())
                                    .cached(got.handle())
                                    .receive(DispatchPlan.Receive.COPY));
            assertThat(cached.numRecvTokens()).isEqualTo(got.numRecvTokens());
            checkCombined(routings, rank, got, cached.recvX());
        }
    }

    private static void copy(Tensor from, Tensor to) {
        for (int row = 0; row < from.size(0); row++) {
            for (int h = 0; h < from.size(1); h++) {
                to.setFloat(from.getFloat(row, h), row, h);
            }
        }
    }

    private static void checkReceived(Routings routings, int rank, DispatchResult got) {
        int row = 0;
        int[] selections = new int[routings.numLocalExperts()];
        for (int source = 0; source < routings.numRanks(); source++) {
            for (int token = 0; token < routings.numTokens(source); token++) {
                if (!routings.goesTo(source, token, rank)) {
                    continue;
                }
                for (int h = 0; h < HIDDEN; h++) {
                    assertThat(got.recvX().getFloat(row, h))
                            .isEqualTo(Routings.value(source, token, h));
                }
                for (int k = 0; k < routings.numTopk(); k++) {
                    long local =
                            routings.expert(source, token, k)
                                    - (long) rank * routings.numLocalExperts();
                    boolean mine = local >= 0 && local < routings.numLocalExperts();
                    assertThat(got.recvTopkIdx().getLong(row, k)).isEqualTo(mine ? local : -1);
                    assertThat(got.recvTopkWeights().getFloat(row, k))
                            .isEqualTo(mine ? Routings.weight(source, token, k) : 0);
                    if (mine) {
                        selections[(int) local]++;
                    }
                }
                row++;
            }
        }
        assertThat(got.numRecvTokens()).isEqualTo(row);
        assertThat(got.recvX().size(0)).isEqualTo(row);
        for (int e = 0; e < selections.length; e++) {
            assertThat(got.numRecvTokensPerExpert().getLong(e)).isEqualTo(selections[e]);
        }
    }

    private static void checkCombined(
            Routings routings, Rank rank, DispatchResult dispatched, Tensor x) {
        int numTokens = routings.numTokens(rank.rank());
        Tensor bias = Tensor.allocate(Arena.ofAuto(), DType.BF16, numTokens, HIDDEN);
        for (int token = 0; token < numTokens; token++) {
            bias.setFloat(token, token, 1);
        }
        CombineResult home =
                rank.combine(
                        CombinePlan.builder(x, dispatched.handle())
                                .topkWeights(dispatched.recvTopkWeights())
                                .bias(bias, bias));
        for (int token = 0; token < numTokens; token++) {
            int copies = routings.numDestinations(rank.rank(), token);
            for (int h = 0; h < HIDDEN; h++) {
                float expected =
                        copies * Routings.value(rank.rank(), token, h) + (h == 1 ? 2 * token : 0);
                assertThat(home.x().getFloat(token, h)).isEqualTo(expected);
            }
            for (int k = 0; k < routings.numTopk(); k++) {
                float expected =
                        routings.expert(rank.rank(), token, k) < 0
                                ? 0
                                : Routings.weight(rank.rank(), token, k);
                assertThat(home.topkWeights().getFloat(token, k)).isEqualTo(expected);
            }
        }
    }

    @ParameterizedTest(name = "{0}x{1}")
    @CsvSource({"1, 4", "2, 3"})
    void sumsHaveTheSameBitsOnEveryRun(int numNodes, int numNvlRanks) throws Exception {
        int numRanks = numNodes * numNvlRanks;
        RankGroup group = RankGroup.of(numNodes, numNvlRanks, limits(6, numRanks));
        group.run(
                rank -> {
                    Routings routings = Routings.random(5, numRanks, numRanks, 6, MAX_TOKENS);
                    DispatchResult got =
                            rank.dispatch(
                                    DispatchPlan.builder(routings.tokens(rank.rank(), HIDDEN))
                                            .topk(
                                                    routings.topkIdxTensor(rank.rank()),
                                                    null,
                                                    numRanks));
                    Tensor x =
                            Tensor.allocate(
                                    Arena.ofAuto(), DType.BF16, got.numRecvTokens(), HIDDEN);
                    Random random = new Random(rank.rank());
                    for (int row = 0; row < got.numRecvTokens(); row++) {
                        for (int h = 0; h < HIDDEN; h++) {
                            x.setFloat(
                                    (float)
                                            (random.nextGaussian()
                                                    * Math.pow(10, random.nextInt(5))),
                                    row,
                                    h);
                        }
                    }
                    MemorySegment first = null;
                    for (int run = 0; run < 20; run++) {
                        Tensor home = rank.combine(CombinePlan.builder(x, got.handle())).x();
                        first = first == null ? home.segment() : first;
                        assertThat(first.mismatch(home.segment())).isEqualTo(-1);
                    }
                });
    }

    @Test
    void aWorstCaseResultIsKnownBeforeItsRunAndReused() throws Exception {
        RankGroup group = RankGroup.of(2, 2, limits(3, 8));
        group.run(
                rank -> {
                    Routings routings = Routings.random(3, 4, 8, 3, MAX_TOKENS);
                    Operation<DispatchResult> operation =
                            rank.kernels()
                                    .prepareDispatch(
                                            routings.plan(rank.rank(), HIDDEN)
                                                    .numWorstTokens(4 * MAX_TOKENS)
                                                    .receive(DispatchPlan.Receive.COPY)
                                                    .build());
                    DispatchResult before = operation.result(Event.completed(), null);
                    Operation<CombineResult> home =
                            rank.kernels()
                                    .prepareCombine(
                                            CombinePlan.builder(before.recvX(), before.handle())
                                                    .build());
                    assertThat(Rank.run(operation)).isSameAs(before);
                    assertThat(before.handle().numRecvTokens()).isEqualTo(4 * MAX_TOKENS);
                    CombineResult sums = Rank.run(home);
                    assertThat(Rank.run(operation)).isSameAs(before);
                    assertThat(Rank.run(home)).isSameAs(sums);
                    for (int token = 0; token < sums.x().size(0); token++) {
                        float expected =
                                routings.numDestinations(rank.rank(), token)
                                        * Routings.value(rank.rank(), token, 3);
                        assertThat(sums.x().getFloat(token, 3)).isEqualTo(expected);
                    }
                });
    }
}
