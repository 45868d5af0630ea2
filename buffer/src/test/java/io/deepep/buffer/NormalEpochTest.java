package io.deepep.buffer;

import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.EpTopology;
import io.deepep.spi.Word;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.normal.NormalRank;
import io.deepep.testkit.exchange.NormalWorld;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.function.IntConsumer;

/**
 * Normal mode after days of calls, when epochs begin again and flags may be older than half of
 * them.
 */
@BackendSuite
record NormalEpochTest(TestBackend backend) {
    private static final int ROUNDS = 3;

    /** What a rank does; {@code next} has the next call come after that of an epoch. */
    private interface Body {
        void run(NormalRank rank, IntConsumer next);
    }

    private void run(EpTopology topology, Body body) {
        int numRanks = topology.numRanks();
        NormalWorld world =
                NormalWorld.of(RoutingSpec.of(numRanks, 20, 4 * numRanks, 3), 128, DType.BF16);
        Ranks.run(
                backend,
                topology,
                builder -> builder.normal(world.limits()),
                context -> {
                    NormalRank rank = new NormalRank(context, world);
                    RankBuffer buffer = (RankBuffer) context.buffer();
                    body.run(
                            rank,
                            epoch -> {
                                context.communicator().barrier(Ranks.TIMEOUT);
                                buffer.resources().normal().startAfter(epoch);
                                context.communicator().barrier(Ranks.TIMEOUT);
                            });
                });
    }

    /** Every kind of call, verified. */
    private static void calls(NormalRank rank) {
        DispatchHandle handle = rank.dispatch().handle();
        rank.combine(handle);
        DispatchPlan cached = rank.bare().cached(handle).build();
        DispatchResult again = rank.context().buffer().dispatch(cached);
        rank.combine(again.handle());
    }

    /** Zero is no epoch: memory holds it before anything was stored there. */
    @Cases({"1, 4", "2, 2", "3, 1"})
    void epochsBeginAgain(int nodes, int ranksPerNode) {
        run(
                Ranks.topology(nodes, ranksPerNode),
                (rank, next) -> {
                    next.accept(-4);
                    for (int i = 0; i < ROUNDS; i++) {
                        calls(rank);
                    }
                });
    }

    /** What a dispatch stored half of all epochs ago, and no combine since, is of no later call. */
    @Cases({"1, 4", "2, 2", "3, 1"})
    void flagsOfLongAgo(int nodes, int ranksPerNode) {
        run(
                Ranks.topology(nodes, ranksPerNode),
                (rank, next) -> {
                    DispatchHandle handle = rank.dispatch().handle();
                    next.accept(Integer.MAX_VALUE / 2);
                    rank.combine(handle);
                    rank.combine(handle);
                    next.accept(Integer.MIN_VALUE + Word.FIRST_EPOCH);
                    calls(rank);
                });
    }
}
