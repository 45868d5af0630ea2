package io.deepep.testkit.conformance.normal;

import static io.deepep.testkit.conformance.Misbehaviour.beLate;
import static io.deepep.testkit.conformance.Misbehaviour.stayAway;

import io.deepep.CombinePlan;
import io.deepep.DispatchHandle;
import io.deepep.DispatchPlan;
import io.deepep.EpTopology;
import io.deepep.Plan;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.BesideOthers;
import io.deepep.testkit.conformance.TimeoutCases;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/** {@link TimeoutCases} of normal mode. */
@BackendSuite
@BesideOthers
public record NormalTimeoutConformance(TestBackend backend) implements TimeoutCases<NormalRank> {
    @Override
    public NormalShape shape(EpTopology topology) {
        return NormalShape.small(topology);
    }

    @Override
    public void withOneLate(NormalRank rank, Consumer<Plan.Builder<?>> options) {
        DispatchPlan.Builder first = rank.plan();
        options.accept(first);
        beLate(rank.context());
        DispatchHandle handle = rank.dispatch(first).handle();
        DispatchPlan.Builder cached = rank.bare().cached(handle);
        options.accept(cached);
        beLate(rank.context());
        DispatchHandle again = rank.context().buffer().dispatch(cached.build()).handle();
        CombinePlan.Builder home = rank.home(again);
        options.accept(home);
        beLate(rank.context());
        rank.combine(home);
    }

    @Override
    public List<BiConsumer<NormalRank, Consumer<Plan.Builder<?>>>> withoutOne() {
        return List.of(
                NormalTimeoutConformance::withoutDispatch,
                NormalTimeoutConformance::withoutCombine);
    }

    private static void withoutDispatch(NormalRank rank, Consumer<Plan.Builder<?>> options) {
        rank.roundTrip();
        DispatchPlan.Builder plan = rank.plan();
        options.accept(plan);
        stayAway(rank.context(), "dispatch.header", () -> rank.call(plan.build()));
    }

    private static void withoutCombine(NormalRank rank, Consumer<Plan.Builder<?>> options) {
        CombinePlan.Builder plan = rank.home(rank.newHandle());
        options.accept(plan);
        stayAway(rank.context(), "combine.header", () -> rank.call(plan.build()));
    }
}
