package io.deepep.normal.host;

import static io.deepep.normal.host.GoodCalls.HIDDEN;
import static io.deepep.normal.host.GoodCalls.NUM_TOKENS;
import static io.deepep.normal.host.GoodCalls.NUM_TOPK;
import static io.deepep.normal.host.GoodCalls.expectWorks;
import static io.deepep.normal.host.GoodCalls.limits;
import static io.deepep.normal.host.GoodCalls.plan;
import static io.deepep.normal.host.GoodCalls.topkIdx;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.deepep.CombinePlan;
import io.deepep.Config;
import io.deepep.DType;
import io.deepep.DispatchLayout;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Event;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.error.CapacityExceededException;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.RankMismatchException;
import io.deepep.error.RoutingException;
import io.deepep.spi.Operation;
import io.deepep.testkit.HostTensors;
import java.time.Duration;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Faults of one rank reach every rank, and the next call works. */
class HostNormalErrorsTest {
    /**
     * Runs what {@code faulty} makes of the plans on all ranks of 2x2 and expects the same failure
     * everywhere.
     */
    private static <E extends Throwable> void expectEverywhere(
            NormalLimits limits, IntFunction<DispatchPlan> faulty, Class<E> type, Consumer<E> check)
            throws Exception {
        RankGroup group = RankGroup.of(2, 2, limits);
        group.run(
                rank -> {
                    expectWorks(rank, 4);
                    Operation<DispatchResult> operation =
                            rank.kernels().prepareDispatch(faulty.apply(rank.rank()));
                    E failure = catchThrowableOfType(type, operation::begin);
                    assertThat(failure).isNotNull();
                    check.accept(failure);
                    expectWorks(rank, 4);
                });
    }

    @ParameterizedTest
    @CsvSource({"8", "-2", "9000000000"})
    void anIndexOutOfRange(long value) throws Exception {
        expectEverywhere(
                limits(),
                rank -> {
                    DispatchPlan plan = plan(rank, 4, 8).build();
                    if (rank == 3) {
                        plan.topkIdx().setLong(value, 4, 1);
                    }
                    return plan;
                },
                RoutingException.class,
                failure -> {
                    assertThat(failure.rank()).isEqualTo(3);
                    assertThat(failure)
                            .hasMessageContaining(
                                    "topkIdx[4][1]=" + value + " is not in [-1, numExperts=8)");
                });
    }

    @Test
    void ranksThatDisagreeOnExperts() throws Exception {
        expectEverywhere(
                limits(),
                rank -> plan(rank, 4, rank == 2 ? 12 : 8).build(),
                RankMismatchException.class,
                failure ->
                        assertThat(failure)
                                .hasMessageContaining("numExperts: rank 0 has 8, rank 2 has 12"));
    }

    /** Then no rank's indices are judged by the number of another. */
    @Test
    void ranksThatDisagreeOnExpertsThatAreSelected() throws Exception {
        expectEverywhere(
                limits(),
                rank -> {
                    DispatchPlan plan = plan(rank, 4, rank == 2 ? 4 : 8).build();
                    plan.topkIdx().setLong(7, 3, 0);
                    return plan;
                },
                RankMismatchException.class,
                failure ->
                        assertThat(failure)
                                .hasMessageContaining("numExperts: rank 0 has 8, rank 2 has 4"));
    }

    @Test
    void ranksThatDisagreeOnHidden() throws Exception {
        expectEverywhere(
                limits(),
                rank ->
                        DispatchPlan.builder(
                                        HostTensors.allocate(
                                                DType.BF16, NUM_TOKENS, rank == 1 ? 32 : HIDDEN))
                                .topk(topkIdx(rank, 4), null, 8)
                                .build(),
                RankMismatchException.class,
                failure ->
                        assertThat(failure)
                                .hasMessageContaining("hidden: rank 0 has 64, rank 1 has 32"));
    }

    @Test
    void moreThanFits() throws Exception {
        NormalLimits limits =
                new NormalLimits(NUM_TOKENS, HIDDEN, NUM_TOPK, 16, 4 * NUM_TOKENS - 1);
        expectEverywhere(
                limits,
                rank -> {
                    DispatchPlan plan = plan(rank, 4, 8).build();
                    for (int token = 0; token < NUM_TOKENS; token++) {
                        plan.topkIdx().setLong(5, token, 0);
                    }
                    return plan;
                },
                CapacityExceededException.class,
                failure -> {
                    assertThat(failure.rank()).isEqualTo(2);
                    assertThat(failure.needed()).isEqualTo(4 * NUM_TOKENS);
                    assertThat(failure.capacity()).isEqualTo(4 * NUM_TOKENS - 1);
                });
    }

    @Test
    void moreThanTheWorstCase() throws Exception {
        expectEverywhere(
                limits(),
                rank -> plan(rank, 4, 8).numWorstTokens(rank == 1 ? 3 : 0).build(),
                CapacityExceededException.class,
                failure ->
                        assertThat(failure)
                                .hasMessageContaining(
                                        "rank 1 would receive 12 rows, but has room for 3; raise"
                                                + " numWorstTokens of its plan"));
    }

    @Test
    void aLayoutThatContradictsItself() throws Exception {
        RankGroup group = RankGroup.of(2, 2, limits());
        group.run(
                rank -> {
                    Tensor topkIdx = topkIdx(rank.rank(), 4);
                    DispatchLayout layout = rank.kernels().layout(topkIdx, 8, Event.completed());
                    Tensor x = HostTensors.allocate(DType.BF16, NUM_TOKENS, HIDDEN);
                    DispatchPlan byLayout = DispatchPlan.builder(x).layout(layout).build();
                    DispatchResult got = rank.dispatch(byLayout);
                    assertThat(got.numRecvTokens()).isEqualTo(12);
                    assertThat(got.recvTopkIdx()).isNull();
                    rank.dispatch(
                            DispatchPlan.builder(x).topk(topkIdx, null, 8).expectLayout(layout));
                    if (rank.rank() == 1) {
                        layout.numTokensPerRank().setLong(5, 2);
                    }
                    assertThatThrownBy(() -> rank.dispatch(byLayout))
                            .isInstanceOf(RoutingException.class)
                            .hasMessageContaining("rank 1: layout.numTokensPerRank[2]=5 but");
                    if (rank.rank() == 1) {
                        layout.isTokenInRank()
                                .setLong(1 - layout.isTokenInRank().getLong(0, 3), 0, 3);
                    }
                    assertThatThrownBy(
                                    () ->
                                            rank.dispatch(
                                                    DispatchPlan.builder(x)
                                                            .topk(topkIdx, null, 8)
                                                            .expectLayout(layout)))
                            .isInstanceOf(RoutingException.class)
                            .hasMessageContaining("rank 1: layout.isTokenInRank[0][3]=");
                    expectWorks(rank, 4);
                });
    }

    @Test
    void differentCalls() throws Exception {
        RankGroup group = RankGroup.of(2, 2, limits());
        group.run(
                rank -> {
                    DispatchResult got = rank.dispatch(plan(rank.rank(), 4, 8));
                    CombinePlan.Builder combine = CombinePlan.builder(got.recvX(), got.handle());
                    Operation<?> operation =
                            rank.rank() == 2
                                    ? rank.prepare(combine)
                                    : rank.prepare(plan(rank.rank(), 4, 8));
                    assertThatThrownBy(operation::begin)
                            .isInstanceOf(RankMismatchException.class)
                            .hasMessageContaining("rank 0 has dispatch, rank 2 has combine");
                    rank.combine(combine);
                });
    }

    @Test
    void handlesOfDifferentDispatches() throws Exception {
        RankGroup group = RankGroup.of(1, 2, limits());
        group.run(
                rank -> {
                    DispatchResult first = rank.dispatch(plan(rank.rank(), 2, 4));
                    DispatchResult second = rank.dispatch(plan(rank.rank(), 2, 4));
                    DispatchResult mine = rank.rank() == 0 ? first : second;
                    Tensor rows = HostTensors.allocate(DType.BF16, mine.numRecvTokens(), HIDDEN);
                    assertThatThrownBy(() -> rank.combine(CombinePlan.builder(rows, mine.handle())))
                            .isInstanceOf(RankMismatchException.class)
                            .hasMessageContaining(
                                    "dispatch of the handle: rank 0 has call 1, rank 1"
                                            + " has call 2");
                    rank.combine(CombinePlan.builder(rows, first.handle()));
                });
    }

    /** The rows of a rank are padded to more bytes than there are addresses; others learn it. */
    @ParameterizedTest(name = "{0}x{1}")
    @CsvSource({"1, 2", "2, 1"})
    void noMemoryForTheRows(int numNodes, int numNvlRanks) throws Exception {
        int hidden = 1 << 25;
        int experts = 32;
        NormalLimits limits = NormalLimits.of(1, hidden, experts, 2 * experts);
        Config config = new Config(2, 1, 2);
        RankGroup group =
                new RankGroup(numNodes, numNvlRanks, limits, config, Duration.ofSeconds(20));
        group.run(
                rank -> {
                    int numTokens = rank.rank() == 0 ? 1 : 0;
                    Tensor x = HostTensors.allocate(DType.BF16, numTokens, hidden);
                    Tensor topkIdx = HostTensors.allocate(DType.I64, numTokens, experts);
                    for (int k = 0; k < numTokens * experts; k++) {
                        topkIdx.setLong(experts + k, 0, k);
                    }
                    DispatchPlan.Builder plan =
                            DispatchPlan.builder(x)
                                    .topk(topkIdx, null, 2 * experts)
                                    .expanded(true)
                                    .expertAlignment(DispatchPlan.MAX_EXPERT_ALIGNMENT);
                    if (rank.rank() == 0) {
                        assertThatThrownBy(() -> rank.dispatch(plan))
                                .isInstanceOf(DeepEpTimeoutException.class)
                                .hasMessageContaining(
                                        "rank 1 left the call with an error of its own");
                    } else {
                        assertThatThrownBy(() -> rank.dispatch(plan))
                                .isInstanceOf(OutOfMemoryError.class);
                    }
                });
    }

    @Test
    void aRankThatNeverComes() throws Exception {
        RankGroup group =
                new RankGroup(2, 2, limits(), new Config(2, 1, 2), Duration.ofMillis(300));
        group.run(
                rank -> {
                    if (rank.rank() != 3) {
                        DeepEpTimeoutException failure =
                                catchThrowableOfType(
                                        DeepEpTimeoutException.class,
                                        () -> rank.dispatch(plan(rank.rank(), 4, 8)));
                        assertThat(failure.peer()).isEqualTo(3);
                        assertThat(failure.phase()).startsWith("dispatch.header");
                    }
                });
    }
}
