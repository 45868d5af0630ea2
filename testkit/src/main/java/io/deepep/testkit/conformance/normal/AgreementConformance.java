package io.deepep.testkit.conformance.normal;

import static io.deepep.testkit.conformance.Misbehaviour.requireMismatch;
import static io.deepep.testkit.conformance.normal.NormalMisuses.EXPERTS;

import io.deepep.CombinePlan;
import io.deepep.Config;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchPlan;
import io.deepep.Plan;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.RankContext;

/**
 * Ranks that disagree about what they are doing all learn it, after which the buffer still works.
 */
@BackendSuite
public record AgreementConformance(TestBackend backend) implements NormalMisuses.Group {
    @Cases({"1, 4", "2, 2"})
    public void differentExperts(RankContext context) {
        NormalRank rank = NormalMisuses.rank(context);
        Tensor nowhere = context.upload(HostTensors.poison(HostTensors.allocate(DType.I64, 10, 4)));
        int experts = context.isCulprit() ? 8 : EXPERTS;
        DispatchPlan plan = rank.bare().topk(nowhere, null, experts).build();
        requireMismatch(() -> rank.call(plan), "xperts", "8", "16");
        rank.roundTrip();
    }

    @Cases({"1, 4", "2, 2"})
    public void differentHiddenSizes(RankContext context) {
        NormalRank rank = NormalMisuses.rank(context);
        Tensor narrow = context.upload(HostTensors.allocate(DType.BF16, 10, 64));
        DispatchPlan plan =
                DispatchPlan.builder(context.isCulprit() ? narrow : rank.x())
                        .topk(rank.topkIdx(), rank.weights(), EXPERTS)
                        .build();
        requireMismatch(() -> rank.call(plan), "hidden", "64", "128");
        rank.roundTrip();
    }

    /** Kernels divide the slots of both channels into rings of two. */
    @Cases({"2, 2"})
    public void differentRings(RankContext context) {
        NormalRank rank = NormalMisuses.rank(context);
        Config config = context.isCulprit() ? new Config(4, 4, 8) : new Config(4, 8, 16);
        requireMismatch(
                () -> rank.call(rank.plan().config(config).build()), "rdmaRecvChunk", "rank 1");
        rank.roundTrip();
    }

    /** The rows of one rank come home in another size. */
    @Cases({"1, 4", "2, 2"})
    public void differentSizesOfCombinedRows(RankContext context) {
        NormalRank rank = NormalMisuses.rank(context);
        DispatchHandle handle = rank.newHandle();
        Tensor outputs = rank.outputs();
        Tensor narrow = context.poisoned(DType.BF16, outputs.size(0), 64);
        CombinePlan plan =
                CombinePlan.builder(context.isCulprit() ? narrow : outputs, handle).build();
        requireMismatch(() -> rank.call(plan), "hidden", "64", "128");
        rank.roundTrip();
    }

    /** One rank combines while the others dispatch. */
    @Cases({"1, 4", "2, 2"})
    public void differentOperations(RankContext context) {
        NormalRank rank = NormalMisuses.rank(context);
        Plan combine = rank.home(rank.newHandle()).build();
        Plan plan = context.isCulprit() ? combine : rank.plan().build();
        requireMismatch(() -> rank.call(plan), "combine", "dispatch");
        rank.roundTrip();
    }

    /** Ranks use the routings of two dispatches that delivered the same. */
    @Cases({"1, 4", "2, 2"})
    public void differentHandles(RankContext context) {
        NormalRank rank = NormalMisuses.rank(context);
        DispatchHandle first = rank.newHandle();
        DispatchHandle second = rank.newHandle();
        DispatchHandle mixed = context.isCulprit() ? first : second;
        requireMismatch(() -> rank.combine(mixed), "dispatch of the handle", "rank 1");
        DispatchPlan cached = rank.bare().cached(mixed).build();
        requireMismatch(() -> rank.call(cached), "dispatch of the handle", "rank 1");
        rank.combine(first);
        rank.combine(second);
    }
}
