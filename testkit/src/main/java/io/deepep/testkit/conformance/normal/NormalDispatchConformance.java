package io.deepep.testkit.conformance.normal;

import static io.deepep.testkit.conformance.Misbehaviour.requireIllegal;

import io.deepep.CallOptions;
import io.deepep.CombinePlan;
import io.deepep.DType;
import io.deepep.DispatchLayout;
import io.deepep.DispatchResult;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import io.deepep.testkit.routing.Gate;

/** Normal-mode dispatch in all its forms, each followed by a combine with the handle it gave. */
@BackendSuite
public record NormalDispatchConformance(TestBackend backend) {
    @Cases(from = "all")
    public void roundTrip(NormalShape shape, RankContext context) {
        shape.rank(context).roundTrip();
    }

    /** Nodes of sizes that no shape has. */
    @Cases(from = "otherNodeSizes")
    public void otherNodeSizes(NormalShape shape, RankContext context) {
        shape.raggedRank(context).roundTrip();
    }

    @Cases(from = "all")
    public void masksDuplicatesAndRaggedTokens(NormalShape shape, RankContext context) {
        shape.raggedRank(context).roundTrip();
    }

    @Cases(from = "few")
    public void everythingToOneExpert(NormalShape shape, RankContext context) {
        int last = shape.experts() - 1;
        shape.rank(context, shape.spec().withGate(new Gate.AllToOne(last))).roundTrip();
    }

    @Cases(from = "few")
    public void skewedExperts(NormalShape shape, RankContext context) {
        shape.rank(context, shape.spec().withGate(new Gate.Zipf(1.2))).roundTrip();
    }

    @Cases(from = "few")
    public void nothingAtAll(NormalShape shape, RankContext context) {
        shape.rank(context, shape.spec().withMaskedShare(1)).roundTrip();
    }

    @Cases(from = "all")
    public void layoutCounts(NormalShape shape, RankContext context) {
        shape.raggedRank(context).layout();
    }

    @Cases(from = "few")
    public void byLayoutAloneAndWithTopk(NormalShape shape, RankContext context) {
        NormalRank rank = shape.raggedRank(context);
        DispatchLayout layout =
                context.buffer()
                        .getDispatchLayout(rank.topkIdx(), shape.experts(), CallOptions.async());
        layout.event().synchronize();
        NormalRank bare = rank.expecting(rank.check().withoutTopk());
        DispatchResult result = bare.dispatch(rank.bare().layout(layout));
        CombinePlan.Builder weighted =
                bare.home(result.handle())
                        .topkWeights(context.poisoned(DType.F32, result.numRecvTokens(), 1));
        requireIllegal(() -> bare.combine(weighted), "had no top-k");
        bare.combine(result.handle());
        rank.roundTrip(rank.plan().expectLayout(layout));
    }

    @Cases(from = "few")
    public void withoutWeights(NormalShape shape, RankContext context) {
        NormalRank rank = shape.raggedRank(context);
        rank.expecting(rank.check().withoutWeights()).roundTrip();
    }

    @Cases(from = "few")
    public void alignedCounts(NormalShape shape, RankContext context) {
        NormalRank rank = shape.raggedRank(context);
        rank.expecting(rank.check().aligned(16)).roundTrip();
    }

    @Cases(from = "all")
    public void worstCase(NormalShape shape, RankContext context) {
        NormalRank rank = shape.raggedRank(context);
        NormalWorld world = rank.world();
        int rows = world.limits().recvCapacity(world.routing().numRanks());
        rank.expecting(world.check().worstCase(rows)).roundTrip();
    }

    @Cases(from = "few")
    public void worstCaseJustLargeEnough(NormalShape shape, RankContext context) {
        NormalRank rank = shape.rank(context);
        rank.expecting(rank.check().worstCase(rank.check().mostRows())).roundTrip();
    }

    @Cases(from = "all")
    public void expanded(NormalShape shape, RankContext context) {
        NormalRank rank = shape.raggedRank(context);
        for (int alignment : new int[] {1, 8, 128}) {
            rank.expecting(rank.check().expanded(alignment)).roundTrip();
        }
    }

    @Cases(from = "few")
    public void expandedWorstCaseWithoutWeights(NormalShape shape, RankContext context) {
        NormalRank rank = shape.raggedRank(context);
        NormalDispatchCheck exact = rank.check().expanded(4).withoutWeights();
        rank.expecting(exact.worstCase(exact.mostRows() + 3)).roundTrip();
    }
}
