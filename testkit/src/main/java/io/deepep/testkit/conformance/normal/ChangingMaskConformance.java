package io.deepep.testkit.conformance.normal;

import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.LowLatencyFormat;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.RankContext;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.lowlatency.LowLatencyRank;
import io.deepep.testkit.conformance.lowlatency.LowLatencyShape;
import io.deepep.testkit.exchange.LowLatencyWorld;
import io.deepep.testkit.exchange.NormalWorld;
import java.time.Duration;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;

/**
 * Many verified calls of both modes on one buffer, one after the other, while ranks are masked and
 * come back again and again. {@code -Ddeepep.seed} draws other ranks.
 */
@BackendSuite
@Timeout(value = 6, unit = TimeUnit.HOURS)
public record ChangingMaskConformance(TestBackend backend) {
    /** What a call may wait for: a rank that is back early waits for the others' calls. */
    private static final Duration PATIENCE = Duration.ofHours(1);

    private static final int TOKENS = 6;
    private static final int HIDDEN = 128;
    private static final int TOPK = 2;
    private static final int CALLS_OF_A_TURN = 4;

    /** A few hundred calls. */
    @Cases({"1, 4", "2, 2", "3, 2"})
    public void few(int nodes, int ranksPerNode) {
        run(Ranks.topology(nodes, ranksPerNode), 400, 40);
    }

    /** 100,000 calls, with another mask after each thousand. */
    @Tag("hour")
    @Cases({"1, 4", "2, 2"})
    public void many(int nodes, int ranksPerNode) {
        run(Ranks.topology(nodes, ranksPerNode), 100_000, 1000);
    }

    private void run(EpTopology topology, int calls, int callsOfAMask) {
        int nodes = topology.numRdmaRanks();
        int perNode = topology.numNvlRanks();
        int experts = 2 * topology.numRanks();
        NormalShape normal =
                new NormalShape(nodes, perNode, TOKENS, HIDDEN, DType.BF16, TOPK, experts);
        LowLatencyShape lowLatency =
                new LowLatencyShape(nodes, perNode, TOKENS, HIDDEN, TOPK, experts);
        Ranks.run(
                backend,
                topology,
                builder ->
                        builder.normal(normal.limits())
                                .lowLatency(lowLatency.limits())
                                .network(backend.networkWithMasks())
                                .timeout(PATIENCE),
                context -> {
                    SplittableRandom random = new SplittableRandom(Long.getLong("deepep.seed", 1));
                    for (int made = 0; made < calls; made += callsOfAMask) {
                        boolean whole = made / callsOfAMask % 2 == 0;
                        int masked = whole ? -1 : random.nextInt(topology.numRanks());
                        if (context.rank() != masked) {
                            if (!whole) {
                                context.buffer().updateMask(masked, true);
                            }
                            exchange(
                                    shareOf(context, normal, masked),
                                    shareOf(context, lowLatency, masked),
                                    callsOfAMask);
                        }
                        context.buffer().rejoin();
                    }
                });
    }

    /** The rank's share of what is exchanged while nobody, or a rank, is masked. */
    private static NormalRank shareOf(RankContext context, NormalShape shape, int masked) {
        NormalWorld world =
                context.shared(
                        "normal " + masked,
                        _ -> masked < 0 ? shape.world() : shape.world().without(masked));
        return new NormalRank(context, world);
    }

    private static LowLatencyRank shareOf(RankContext context, LowLatencyShape shape, int masked) {
        LowLatencyWorld world =
                context.shared(
                        "low-latency " + masked,
                        _ -> masked < 0 ? shape.world() : shape.without(Set.of(masked)));
        return new LowLatencyRank(context, world);
    }

    /** A dispatch and a combine of each mode in turn, all checked. */
    private static void exchange(NormalRank normal, LowLatencyRank lowLatency, int calls) {
        for (int made = 0; made < calls; made += CALLS_OF_A_TURN) {
            normal.roundTrip();
            lowLatency.roundTrip(LowLatencyFormat.BF16);
        }
    }
}
