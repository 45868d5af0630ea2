package io.deepep.testkit.conformance.normal;

import static io.deepep.testkit.conformance.Misbehaviour.requireBadIndices;
import static io.deepep.testkit.conformance.normal.RoutingErrorConformance.requireContradiction;

import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchLayout;
import io.deepep.DispatchPlan;
import io.deepep.Tensor;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.Misbehaviour;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.normal.NormalMisuses.LayoutPart;
import java.time.Duration;
import java.util.function.Function;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;

/** Nodes of more ranks than a few, and groups of odd sizes. */
@BackendSuite
public record NormalLargeConformance(TestBackend backend) {
    /** Every kind of call, twice: with tokens of all ranks, and with some that have none. */
    @Cases(from = {"largeNode", "largeNodes", "uneven"})
    public void everyCall(NormalShape shape, RankContext context) {
        calls(shape, shape.rank(context));
        calls(shape, shape.raggedRank(context));
    }

    @Tag("slow")
    @Cases(from = {"largestNodes", "manyRanks"})
    @Timeout(300)
    public void everyCallOfTheLargest(NormalShape shape, RankContext context) {
        calls(shape, shape.raggedRank(context));
        calls(shape, shape.rank(context));
    }

    private static void calls(NormalShape shape, NormalRank rank) {
        if (shape.dtype() == DType.BF16) {
            NormalLoss.calls(rank);
        } else {
            DispatchHandle handle = rank.dispatch().handle();
            rank.combineFp8(handle);
            rank.combineFp8Rows(handle);
        }
        int rows = rank.world().mostRows();
        rank.expecting(rank.check().worstCase(rows)).roundTrip();
    }

    @Cases(from = {"largeNode", "largeNodes"})
    public void layouts(NormalShape shape, RankContext context) {
        NormalRank rank = shape.raggedRank(context);
        DispatchLayout layout = rank.layout();
        rank.expecting(rank.check().withoutTopk()).roundTrip(rank.bare().layout(layout));
        rank.roundTrip(rank.plan().expectLayout(layout));
    }

    @Tag("slow")
    @Cases(from = {"largestNodes", "manyRanks"})
    @Timeout(300)
    public void layoutsOfTheLargest(NormalShape shape, RankContext context) {
        layouts(shape, context);
    }

    /** The last two ranks name experts that do not exist: all learn of the first of them. */
    @Cases(from = {"largeNode", "largeNodes"})
    public void expertOutOfRange(NormalShape shape, RankContext context) {
        int culprit = shape.topology().numRanks() - 2;
        NormalRank rank = shape.rank(context);
        Tensor idx = context.download(rank.topkIdx());
        if (context.rank() >= culprit) {
            idx.setLong(shape.experts() + context.rank(), idx.size(0) - 1, 2);
        }
        requireBadIndices(rank, context.upload(idx), culprit, "=" + (shape.experts() + culprit));
    }

    /** The last rank's layout is wrong about itself: in its mask, then in its counts. */
    @Cases(from = {"largeNode", "largeNodes"})
    public void contradictoryLayout(NormalShape shape, RankContext context) {
        int last = shape.topology().numRanks() - 1;
        NormalRank rank = shape.rank(context);
        Function<DispatchLayout, DispatchPlan.Builder> expected =
                layout -> rank.plan().expectLayout(layout);
        requireContradiction(rank, last, expected, LayoutPart.MASK, 1, last);
        requireContradiction(rank, last, expected, LayoutPart.PER_RANK, last);
        rank.roundTrip();
    }

    /** The last rank has room for one row less than comes. */
    @Cases(from = {"largeNode", "largeNodes"})
    public void tooManyRows(NormalShape shape, RankContext context) {
        int last = shape.topology().numRanks() - 1;
        NormalRank rank = shape.rank(context);
        int needed = rank.world().oracle().rows(last).size();
        int room = context.rank() == last ? needed - 1 : rank.world().mostRows();
        DispatchPlan plan = rank.plan().numWorstTokens(room).build();
        for (int i = 0; i < 2; i++) {
            Misbehaviour.requireTooMany(() -> rank.call(plan), last, needed, needed - 1);
        }
        rank.roundTrip();
    }

    /** The last rank stays away from a dispatch, which the others name. */
    @Cases(from = "largeNode")
    public void absentRank(NormalShape shape) {
        int last = shape.topology().numRanks() - 1;
        shape.run(
                backend,
                builder -> builder.timeout(Duration.ofSeconds(2)),
                context -> {
                    NormalRank rank = shape.rank(context);
                    context.meet();
                    if (context.rank() != last) {
                        Misbehaviour.requirePeer(last, () -> rank.call(rank.plan().build()));
                    }
                    context.meet();
                });
    }
}
