package io.deepep.testkit.conformance.normal;

import static io.deepep.testkit.conformance.Misbehaviour.BRIEF;
import static io.deepep.testkit.conformance.Misbehaviour.SHORT;
import static io.deepep.testkit.conformance.Misbehaviour.beLate;
import static io.deepep.testkit.conformance.Misbehaviour.stayAway;
import static io.deepep.testkit.conformance.Ranks.TIMEOUT;

import io.deepep.Buffer;
import io.deepep.CombinePlan;
import io.deepep.DispatchHandle;
import io.deepep.DispatchPlan;
import io.deepep.Plan;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.BesideOthers;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.Ranks;
import java.time.Duration;
import java.util.function.Consumer;

/** Time-outs of single calls, longer and shorter than those of their buffer; and of their start. */
@BackendSuite
@BesideOthers
public record NormalTimeoutConformance(TestBackend backend) implements NormalSuite {
    private static final Duration SHORTER = SHORT.dividedBy(3);

    private void run(
            int nodes,
            int ranksPerNode,
            Consumer<Buffer.Builder> options,
            Consumer<NormalRank> work) {
        NormalShape shape = NormalShape.small(Ranks.topology(nodes, ranksPerNode));
        shape.run(backend, options, context -> work.accept(shape.rank(context)));
    }

    private void late(
            int nodes,
            int ranksPerNode,
            Consumer<Buffer.Builder> options,
            Consumer<Plan.Builder<?>> with) {
        run(
                nodes,
                ranksPerNode,
                builder -> options.accept(builder.timeout(BRIEF)),
                rank -> withOneLate(rank, with));
    }

    private void away(int nodes, int ranksPerNode, Consumer<NormalRank> work) {
        run(nodes, ranksPerNode, builder -> builder.timeout(Duration.ofHours(1)), work);
    }

    /** A rank that is late by less than the call's time-out changes nothing. */
    @Cases({"1, 4", "2, 2"})
    public void longerThanTheBuffers(int nodes, int ranksPerNode) {
        late(nodes, ranksPerNode, _ -> {}, plan -> plan.timeout(TIMEOUT));
    }

    private static void withOneLate(NormalRank rank, Consumer<Plan.Builder<?>> with) {
        DispatchPlan.Builder first = rank.plan();
        with.accept(first);
        beLate(rank.context());
        DispatchHandle handle = rank.dispatch(first).handle();
        DispatchPlan.Builder cached = rank.bare().cached(handle);
        with.accept(cached);
        beLate(rank.context());
        DispatchHandle again = rank.context().buffer().dispatch(cached.build()).handle();
        CombinePlan.Builder combine = CombinePlan.builder(rank.outputs(), again);
        with.accept(combine);
        beLate(rank.context());
        rank.verify(rank.context().buffer().combine(combine.build()));
    }

    /** A rank that begins later than after the time-out, but within that of the start. */
    @Cases({"1, 4", "2, 2", "3, 1"})
    public void startsLate(int nodes, int ranksPerNode) {
        late(nodes, ranksPerNode, builder -> builder.startTimeout(TIMEOUT), plan -> {});
    }

    /** The same where plans say it, and the ranks that are waited for in vain would be masked. */
    @Cases({"1, 4", "2, 2"})
    public void startsOfPlansAreLate(int nodes, int ranksPerNode) {
        late(
                nodes,
                ranksPerNode,
                builder -> builder.maskTimedOutRanks(true),
                plan -> plan.startTimeout(TIMEOUT));
    }

    /** Who stays away is named after the call's time-out, whatever the buffer's. */
    @Cases({"1, 4", "2, 2"})
    public void shorterThanTheBuffers(int nodes, int ranksPerNode) {
        away(nodes, ranksPerNode, rank -> withoutDispatch(rank, plan -> plan.timeout(SHORT)));
        away(nodes, ranksPerNode, rank -> withoutCombine(rank, plan -> plan.timeout(SHORT)));
    }

    /** Who never begins is named after the start time-out, be the time-out shorter or longer. */
    @Cases({"1, 4", "2, 2"})
    public void neverStarts(int nodes, int ranksPerNode) {
        away(nodes, ranksPerNode, rank -> withoutDispatch(rank, plan -> plan.startTimeout(SHORT)));
        away(
                nodes,
                ranksPerNode,
                rank -> withoutCombine(rank, plan -> plan.timeout(SHORTER).startTimeout(SHORT)));
    }

    private static void withoutDispatch(NormalRank rank, Consumer<DispatchPlan.Builder> options) {
        rank.roundTrip();
        DispatchPlan.Builder plan = rank.plan();
        options.accept(plan);
        stayAway(rank.context(), "dispatch.header", () -> rank.call(plan.build()));
    }

    private static void withoutCombine(NormalRank rank, Consumer<CombinePlan.Builder> options) {
        DispatchHandle handle = rank.dispatch().handle();
        CombinePlan.Builder plan = CombinePlan.builder(rank.outputs(), handle);
        options.accept(plan);
        stayAway(rank.context(), "combine.header", () -> rank.call(plan.build()));
    }
}
