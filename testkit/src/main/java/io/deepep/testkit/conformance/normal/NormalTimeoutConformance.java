package io.deepep.testkit.conformance.normal;

import static io.deepep.testkit.conformance.Misbehaviour.beLate;
import static io.deepep.testkit.conformance.Misbehaviour.stayAway;

import io.deepep.CombinePlan;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchPlan;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.GroupSource;
import io.deepep.testkit.conformance.Misbehaviour;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import java.time.Duration;

/** Time-outs of single calls, longer and shorter than those of their buffer. */
@BackendSuite
public record NormalTimeoutConformance(TestBackend backend) implements NormalSuite {
    private interface Work {
        void of(NormalRank rank);
    }

    private void run(int nodes, int ranksPerNode, Duration timeout, Work work) {
        int numRanks = nodes * ranksPerNode;
        NormalWorld world =
                new NormalShape(nodes, ranksPerNode, 20, 256, DType.BF16, 4, 4 * numRanks).world();
        Ranks.run(
                backend,
                Ranks.topology(nodes, ranksPerNode),
                builder -> builder.normal(world.limits()).timeout(timeout),
                context -> work.of(new NormalRank(context, world)));
    }

    /** A rank that is late by less than the call's time-out changes nothing. */
    @Cases
    @GroupSource({"1, 4", "2, 2"})
    public void longerThanTheBuffers(int nodes, int ranksPerNode) {
        run(
                nodes,
                ranksPerNode,
                Misbehaviour.BRIEF,
                rank -> {
                    NormalDispatchCheck check = rank.world().check();
                    beLate(rank.context());
                    DispatchHandle handle =
                            rank.dispatch(rank.plan().timeout(Ranks.TIMEOUT), check).handle();
                    beLate(rank.context());
                    DispatchPlan cached = rank.bare().cached(handle).timeout(Ranks.TIMEOUT).build();
                    DispatchHandle again = rank.context().buffer().dispatch(cached).handle();
                    beLate(rank.context());
                    CombinePlan combine =
                            CombinePlan.builder(rank.outputs(check), again)
                                    .timeout(Ranks.TIMEOUT)
                                    .build();
                    rank.verify(rank.context().buffer().combine(combine), check);
                });
    }

    /** Who stays away is named after the call's time-out, whatever the buffer's. */
    @Cases
    @GroupSource({"1, 4", "2, 2"})
    public void shorterThanTheBuffers(int nodes, int ranksPerNode) {
        Duration buffers = Duration.ofHours(1);
        run(nodes, ranksPerNode, buffers, NormalTimeoutConformance::withoutDispatch);
        run(nodes, ranksPerNode, buffers, NormalTimeoutConformance::withoutCombine);
    }

    private static void withoutDispatch(NormalRank rank) {
        rank.roundTrip();
        stayAway(
                rank.context(),
                "dispatch.header",
                () -> rank.call(rank.plan().timeout(Misbehaviour.SHORT).build()));
    }

    private static void withoutCombine(NormalRank rank) {
        NormalDispatchCheck check = rank.world().check();
        DispatchHandle handle = rank.dispatch(rank.plan(), check).handle();
        CombinePlan combine =
                CombinePlan.builder(rank.outputs(check), handle)
                        .timeout(Misbehaviour.SHORT)
                        .build();
        stayAway(rank.context(), "combine.header", () -> rank.call(combine));
    }
}
