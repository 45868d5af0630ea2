package io.deepep.testkit.conformance.normal;

import static io.deepep.testkit.conformance.Misbehaviour.CULPRIT;
import static io.deepep.testkit.conformance.Misbehaviour.requireMismatch;
import static io.deepep.testkit.conformance.normal.NormalMisuses.EXPERTS;

import io.deepep.CombinePlan;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.GroupSource;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.oracle.NormalDispatchCheck;

/**
 * Ranks that disagree about what they are doing all learn it, after which the buffer still works.
 */
@BackendSuite
public record AgreementConformance(TestBackend backend) {
    @Cases
    @GroupSource({"1, 4", "2, 2"})
    public void differentExperts(int nodes, int ranksPerNode) {
        NormalWorld world = NormalMisuses.world(4);
        Ranks.run(
                backend(),
                Ranks.topology(nodes, ranksPerNode),
                b -> b.normal(NormalMisuses.LIMITS),
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    Tensor nowhere =
                            context.upload(
                                    HostTensors.poison(HostTensors.allocate(DType.I64, 10, 4)));
                    int experts = context.rank() == CULPRIT ? 8 : EXPERTS;
                    DispatchPlan plan = rank.bare().topk(nowhere, null, experts).build();
                    requireMismatch(
                            () -> context.buffer().dispatch(plan).event().synchronize(),
                            "xperts",
                            "8",
                            "16");
                    rank.roundTrip();
                });
    }

    @Cases
    @GroupSource({"1, 4", "2, 2"})
    public void differentHiddenSizes(int nodes, int ranksPerNode) {
        NormalWorld world = NormalMisuses.world(4);
        Ranks.run(
                backend(),
                Ranks.topology(nodes, ranksPerNode),
                b -> b.normal(NormalMisuses.LIMITS),
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    Tensor narrow = context.upload(HostTensors.allocate(DType.BF16, 10, 64));
                    DispatchPlan plan =
                            DispatchPlan.builder(context.rank() == CULPRIT ? narrow : rank.x())
                                    .topk(rank.topkIdx(), rank.weights(), EXPERTS)
                                    .build();
                    requireMismatch(
                            () -> context.buffer().dispatch(plan).event().synchronize(),
                            "hidden",
                            "64",
                            "128");
                    rank.roundTrip();
                });
    }

    /** One rank combines while the others dispatch. */
    @Cases
    @GroupSource({"1, 4", "2, 2"})
    public void differentOperations(int nodes, int ranksPerNode) {
        NormalWorld world = NormalMisuses.world(4);
        Ranks.run(
                backend(),
                Ranks.topology(nodes, ranksPerNode),
                b -> b.normal(NormalMisuses.LIMITS),
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    DispatchResult result = rank.dispatch(rank.plan(), world.check());
                    CombinePlan combine =
                            CombinePlan.builder(rank.outputs(world.check()), result.handle())
                                    .build();
                    DispatchPlan dispatch = rank.plan().build();
                    requireMismatch(
                            () -> {
                                if (context.rank() == CULPRIT) {
                                    context.buffer().combine(combine).event().synchronize();
                                } else {
                                    context.buffer().dispatch(dispatch).event().synchronize();
                                }
                            },
                            "combine",
                            "dispatch");
                    rank.roundTrip();
                });
    }

    /** Ranks use the routings of two dispatches that delivered the same. */
    @Cases
    @GroupSource({"1, 4", "2, 2"})
    public void differentHandles(int nodes, int ranksPerNode) {
        NormalWorld world = NormalMisuses.world(4);
        Ranks.run(
                backend(),
                Ranks.topology(nodes, ranksPerNode),
                b -> b.normal(NormalMisuses.LIMITS),
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    NormalDispatchCheck check = world.check();
                    DispatchHandle first = rank.dispatch(rank.plan(), check).handle();
                    DispatchHandle second = rank.dispatch(rank.plan(), check).handle();
                    DispatchHandle mixed = context.rank() == CULPRIT ? first : second;
                    requireMismatch(
                            () -> rank.combine(mixed, check), "dispatch of the handle", "rank 1");
                    DispatchPlan cached = rank.bare().cached(mixed).build();
                    requireMismatch(
                            () -> context.buffer().dispatch(cached).event().synchronize(),
                            "dispatch of the handle",
                            "rank 1");
                    rank.combine(first, check);
                    rank.combine(second, check);
                });
    }
}
