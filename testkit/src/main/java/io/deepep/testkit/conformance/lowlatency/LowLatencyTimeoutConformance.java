package io.deepep.testkit.conformance.lowlatency;

import static io.deepep.testkit.conformance.Misbehaviour.beLate;
import static io.deepep.testkit.conformance.Misbehaviour.stayAway;

import io.deepep.EpTopology;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.Plan;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.BesideOthers;
import io.deepep.testkit.conformance.TimeoutCases;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/** {@link TimeoutCases} of low-latency mode, with and without hooks. */
@BackendSuite
@BesideOthers
public record LowLatencyTimeoutConformance(TestBackend backend)
        implements TimeoutCases<LowLatencyRank> {
    private static final LowLatencyFormat BF16 = LowLatencyFormat.BF16;

    @Override
    public LowLatencyShape shape(EpTopology topology) {
        return LowLatencyShape.of(topology, 6, 128, 4, 2 * topology.numRanks());
    }

    @Override
    public void withOneLate(LowLatencyRank rank, Consumer<Plan.Builder<?>> options) {
        for (boolean hooked : new boolean[] {false, true}) {
            LowLatencyDispatchPlan.Builder dispatch = rank.plan(BF16).receiveHook(hooked);
            options.accept(dispatch);
            beLate(rank.context());
            LowLatencyHandle handle = rank.dispatch(dispatch.build()).handle();
            LowLatencyCombinePlan.Builder combine = rank.home(handle).receiveHook(hooked);
            options.accept(combine);
            beLate(rank.context());
            rank.combine(combine);
        }
    }

    @Override
    public List<BiConsumer<LowLatencyRank, Consumer<Plan.Builder<?>>>> withoutOne() {
        return List.of(
                (rank, options) -> withoutDispatch(rank, options, false),
                (rank, options) -> withoutDispatch(rank, options, true),
                (rank, options) -> withoutCombine(rank, options, false),
                (rank, options) -> withoutCombine(rank, options, true));
    }

    private static void withoutDispatch(
            LowLatencyRank rank, Consumer<Plan.Builder<?>> options, boolean hooked) {
        rank.roundTrip();
        LowLatencyDispatchPlan.Builder plan = rank.plan(BF16).receiveHook(hooked);
        options.accept(plan);
        stayAway(rank.context(), "low-latency dispatch", () -> rank.call(plan.build()));
    }

    private static void withoutCombine(
            LowLatencyRank rank, Consumer<Plan.Builder<?>> options, boolean hooked) {
        rank.roundTrip();
        LowLatencyCombinePlan.Builder plan = rank.home(rank.newHandle()).receiveHook(hooked);
        options.accept(plan);
        stayAway(rank.context(), "low-latency combine", () -> rank.call(plan.build()));
    }
}
