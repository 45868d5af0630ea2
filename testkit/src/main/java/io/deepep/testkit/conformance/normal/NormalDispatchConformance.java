package io.deepep.testkit.conformance.normal;

import io.deepep.CallOptions;
import io.deepep.DType;
import io.deepep.DispatchLayout;
import io.deepep.DispatchPlan;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.GroupSource;
import io.deepep.testkit.oracle.LayoutCheck;
import io.deepep.testkit.oracle.NormalDispatchCheck;
import io.deepep.testkit.routing.Gate;
import org.junit.jupiter.params.provider.MethodSource;

/** Normal-mode dispatch in all its forms, each followed by a combine with the handle it gave. */
@BackendSuite
public record NormalDispatchConformance(TestBackend backend) implements NormalSuite {
    @Cases
    @MethodSource(ALL)
    public void roundTrip(NormalShape shape) {
        NormalWorld world = shape.world();
        run(shape, world, context -> new NormalRank(context, world).roundTrip());
    }

    /** Nodes of sizes that no shape has. */
    @Cases
    @GroupSource({"1, 5", "1, 6", "1, 7", "2, 3", "2, 6", "3, 2"})
    public void otherNodeSizes(int nodes, int ranksPerNode) {
        int experts = 3 * nodes * ranksPerNode;
        NormalShape shape =
                new NormalShape(nodes, ranksPerNode, 11, 128, DType.FP8_E4M3, 4, experts);
        NormalWorld world = shape.raggedWorld();
        run(shape, world, context -> new NormalRank(context, world).roundTrip());
    }

    @Cases
    @MethodSource(ALL)
    public void masksDuplicatesAndRaggedTokens(NormalShape shape) {
        NormalWorld world = shape.raggedWorld();
        run(shape, world, context -> new NormalRank(context, world).roundTrip());
    }

    @Cases
    @MethodSource(FEW)
    public void everythingToOneExpert(NormalShape shape) {
        int last = shape.experts() - 1;
        NormalWorld world =
                NormalWorld.of(
                        shape.spec().withGate(new Gate.AllToOne(last)),
                        shape.hidden(),
                        shape.dtype());
        run(shape, world, context -> new NormalRank(context, world).roundTrip());
    }

    @Cases
    @MethodSource(FEW)
    public void skewedExperts(NormalShape shape) {
        NormalWorld world =
                NormalWorld.of(
                        shape.spec().withGate(new Gate.Zipf(1.2)), shape.hidden(), shape.dtype());
        run(shape, world, context -> new NormalRank(context, world).roundTrip());
    }

    @Cases
    @MethodSource(FEW)
    public void nothingAtAll(NormalShape shape) {
        NormalWorld world =
                NormalWorld.of(shape.spec().withMaskedShare(1), shape.hidden(), shape.dtype());
        run(shape, world, context -> new NormalRank(context, world).roundTrip());
    }

    @Cases
    @MethodSource(ALL)
    public void layoutCounts(NormalShape shape) {
        NormalWorld world = shape.raggedWorld();
        run(
                shape,
                world,
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    DispatchLayout layout =
                            context.buffer().getDispatchLayout(rank.topkIdx(), shape.experts());
                    layout.event().synchronize();
                    LayoutCheck.check(
                            world.oracle(), context.topology(), layout, context::download);
                });
    }

    @Cases
    @MethodSource(FEW)
    public void byLayoutAloneAndWithTopk(NormalShape shape) {
        NormalWorld world = shape.raggedWorld();
        run(
                shape,
                world,
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    DispatchLayout layout =
                            context.buffer()
                                    .getDispatchLayout(
                                            rank.topkIdx(), shape.experts(), CallOptions.async());
                    layout.event().synchronize();
                    NormalDispatchCheck bare = world.check().withoutTopk();
                    rank.combine(rank.dispatch(rank.bare().layout(layout), bare).handle(), bare);
                    NormalDispatchCheck full = world.check();
                    rank.combine(
                            rank.dispatch(rank.plan().expectLayout(layout), full).handle(), full);
                });
    }

    @Cases
    @MethodSource(FEW)
    public void withoutWeights(NormalShape shape) {
        NormalWorld world = shape.raggedWorld();
        NormalDispatchCheck check = world.check().withoutWeights();
        run(
                shape,
                world,
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    DispatchPlan.Builder plan =
                            rank.bare().topk(rank.topkIdx(), null, shape.experts());
                    rank.combine(rank.dispatch(plan, check).handle(), check);
                });
    }

    @Cases
    @MethodSource(FEW)
    public void alignedCounts(NormalShape shape) {
        NormalWorld world = shape.raggedWorld();
        NormalDispatchCheck check = world.check().aligned(16);
        run(
                shape,
                world,
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    rank.combine(
                            rank.dispatch(rank.plan().expertAlignment(16), check).handle(), check);
                });
    }

    @Cases
    @MethodSource(ALL)
    public void worstCase(NormalShape shape) {
        NormalWorld world = shape.raggedWorld();
        int rows = world.limits().recvCapacity(world.routing().numRanks());
        NormalDispatchCheck check = world.check().worstCase(rows);
        run(
                shape,
                world,
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    rank.combine(
                            rank.dispatch(rank.plan().numWorstTokens(rows), check).handle(), check);
                });
    }

    @Cases
    @MethodSource(FEW)
    public void worstCaseJustLargeEnough(NormalShape shape) {
        NormalWorld world = shape.world();
        int rows = 1;
        for (int rank = 0; rank < world.routing().numRanks(); rank++) {
            rows = Math.max(rows, world.oracle().rows(rank).size());
        }
        int most = rows;
        NormalDispatchCheck check = world.check().worstCase(most);
        run(
                shape,
                world,
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    rank.combine(
                            rank.dispatch(rank.plan().numWorstTokens(most), check).handle(), check);
                });
    }

    @Cases
    @MethodSource(ALL)
    public void expanded(NormalShape shape) {
        NormalWorld world = shape.raggedWorld();
        run(
                shape,
                world,
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    for (int alignment : new int[] {1, 8, 128}) {
                        NormalDispatchCheck check = world.check().expanded(alignment);
                        DispatchPlan.Builder plan =
                                rank.plan().expanded(true).expertAlignment(alignment);
                        rank.combine(rank.dispatch(plan, check).handle(), check);
                    }
                });
    }

    @Cases
    @MethodSource(FEW)
    public void expandedWorstCaseWithoutWeights(NormalShape shape) {
        NormalWorld world = shape.raggedWorld();
        int most = 1;
        for (int rank = 0; rank < world.routing().numRanks(); rank++) {
            most = Math.max(most, world.oracle().expandedRows(rank, 4).size());
        }
        int rows = most + 3;
        NormalDispatchCheck check = world.check().expanded(4).worstCase(rows).withoutWeights();
        run(
                shape,
                world,
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    DispatchPlan.Builder plan =
                            rank.bare()
                                    .topk(rank.topkIdx(), null, shape.experts())
                                    .expanded(true)
                                    .expertAlignment(4)
                                    .numWorstTokens(rows);
                    rank.combine(rank.dispatch(plan, check).handle(), check);
                });
    }
}
