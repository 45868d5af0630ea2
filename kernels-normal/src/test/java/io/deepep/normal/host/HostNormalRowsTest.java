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
import java.lang.foreign.Arena;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Rows that do not simply come as they were: expanded, FP8. */
class HostNormalRowsTest {
    private static final int HIDDEN = 136;
    private static final int MAX_TOKENS = 40;

    private static NormalLimits limits(int numTopk, int numExperts) {
        return NormalLimits.of(MAX_TOKENS, HIDDEN + 120, numTopk, numExperts);
    }

    @ParameterizedTest(name = "{0}x{1}")
    @CsvSource({"1, 2", "2, 2", "2, 4"})
    void expandedRowsAreGroupedAlignedAndSummed(int numNodes, int numNvlRanks) throws Exception {
        int numRanks = numNodes * numNvlRanks;
        RankGroup group = RankGroup.of(numNodes, numNvlRanks, limits(4, 3 * numRanks));
        group.run(
                rank -> {
                    for (int seed = 0; seed < 4; seed++) {
                        Routings routings =
                                Routings.random(seed, numRanks, 3 * numRanks, 4, MAX_TOKENS);
                        int worst = seed % 2 == 0 ? 0 : 4 * MAX_TOKENS * numRanks + 8 * 3;
                        DispatchResult got =
                                rank.dispatch(
                                        routings.plan(rank.rank(), HIDDEN)
                                                .expanded(true)
                                                .expertAlignment(8)
                                                .numWorstTokens(worst));
                        if (worst > 0) {
                            assertThat(got.numRecvTokens()).isEqualTo(worst);
                        }
                        checkExpanded(routings, rank.rank(), got);
                        checkExpandedHome(routings, rank, got);
                        DispatchResult cached =
                                rank.dispatch(
                                        DispatchPlan.builder(routings.tokens(rank.rank(), HIDDEN))
                                                .cached(got.handle()));
                        assertThat(cached.expertOffsets().getLong(3))
                                .isEqualTo(got.expertOffsets().getLong(3));
                        checkExpandedHome(
                                routings,
                                rank,
                                new DispatchResult(
                                        cached.recvX(),
                                        null,
                                        null,
                                        got.recvTopkWeights(),
                                        null,
                                        null,
                                        cached.numRecvTokens(),
                                        got.handle(),
                                        Event.completed()));
                    }
                });
    }

    private static void checkExpanded(Routings routings, int rank, DispatchResult got) {
        int row = 0;
        for (int e = 0; e < routings.numLocalExperts(); e++) {
            assertThat(got.expertOffsets().getLong(e)).isEqualTo(row);
            for (int source = 0; source < routings.numRanks(); source++) {
                for (int token = 0; token < routings.numTokens(source); token++) {
                    for (int k = 0; k < routings.numTopk(); k++) {
                        if (routings.expert(source, token, k)
                                == (long) rank * routings.numLocalExperts() + e) {
                            assertThat(got.recvX().getFloat(row, 5))
                                    .isEqualTo(Routings.value(source, token, 5));
                            assertThat(got.recvTopkWeights().getFloat(row))
                                    .isEqualTo(Routings.weight(source, token, k));
                            row++;
                        }
                    }
                }
            }
            for (; row % 8 != 0; row++) {
                assertThat(got.recvX().getFloat(row, 5)).isZero();
                assertThat(got.recvTopkWeights().getFloat(row)).isZero();
            }
            assertThat(got.numRecvTokensPerExpert().getLong(e))
                    .isEqualTo(row - got.expertOffsets().getLong(e));
        }
        assertThat(got.expertOffsets().getLong(routings.numLocalExperts())).isEqualTo(row);
    }

    private static void checkExpandedHome(Routings routings, Rank rank, DispatchResult got) {
        CombineResult home =
                rank.combine(
                        CombinePlan.builder(got.recvX(), got.handle())
                                .topkWeights(got.recvTopkWeights()));
        for (int token = 0; token < routings.numTokens(rank.rank()); token++) {
            int selections = 0;
            for (int k = 0; k < routings.numTopk(); k++) {
                boolean selected = routings.expert(rank.rank(), token, k) >= 0;
                selections += selected ? 1 : 0;
                assertThat(home.topkWeights().getFloat(token, k))
                        .isEqualTo(selected ? Routings.weight(rank.rank(), token, k) : 0);
            }
            assertThat(home.x().getFloat(token, 7))
                    .isEqualTo(selections * Routings.value(rank.rank(), token, 7));
        }
    }

    @ParameterizedTest(name = "{0}x{1}")
    @CsvSource({"1, 4", "2, 2"})
    void fp8RowsTravelWithStridedScalesAndWorstCaseCounts(int numNodes, int numNvlRanks)
            throws Exception {
        int numRanks = numNodes * numNvlRanks;
        int hidden = 256;
        RankGroup group = RankGroup.of(numNodes, numNvlRanks, limits(2, 2 * numRanks));
        group.run(
                rank -> {
                    Routings routings = Routings.random(11, numRanks, 2 * numRanks, 2, MAX_TOKENS);
                    int numTokens = routings.numTokens(rank.rank());
                    Tensor x = Tensor.allocate(Arena.ofAuto(), DType.FP8_E4M3, numTokens, hidden);
                    Tensor columns = Tensor.allocate(Arena.ofAuto(), DType.F32, 2, numTokens);
                    Tensor scales =
                            Tensor.strided(
                                    columns.segment(),
                                    DType.F32,
                                    new long[] {numTokens, 2},
                                    new long[] {1, numTokens});
                    for (int token = 0; token < numTokens; token++) {
                        x.setLong(rank.rank() * 31 + token & 0x7f, token, hidden - 1);
                        scales.setFloat(rank.rank() + token / 64f, token, 1);
                    }
                    int worst = MAX_TOKENS * numRanks;
                    DispatchResult got =
                            rank.dispatch(
                                    DispatchPlan.builder(x, scales)
                                            .topk(
                                                    routings.topkIdxTensor(rank.rank()),
                                                    null,
                                                    2 * numRanks)
                                            .numWorstTokens(worst));
                    int row = 0;
                    for (int source = 0; source < numRanks; source++) {
                        for (int token = 0; token < routings.numTokens(source); token++) {
                            if (routings.goesTo(source, token, rank.rank())) {
                                assertThat(got.recvX().getLong(row, hidden - 1))
                                        .isEqualTo(source * 31 + token & 0x7f);
                                assertThat(got.recvScales().getFloat(row, 1))
                                        .isEqualTo(source + token / 64f);
                                row++;
                            }
                        }
                    }
                    assertThat(got.recvX().size(0)).isEqualTo(worst);
                    assertThat(got.recvTopkWeights()).isNull();
                    for (; row < worst; row++) {
                        assertThat(got.recvTopkIdx().getLong(row, 0)).isEqualTo(-1);
                    }
                });
    }
}
