package io.deepep.testkit.conformance.normal;

import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.LowLatencyFormat;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BackendSuite;
import io.deepep.testkit.conformance.Cases;
import io.deepep.testkit.conformance.Ranks;
import io.deepep.testkit.conformance.lowlatency.LowLatencyRank;
import io.deepep.testkit.conformance.lowlatency.LowLatencyShape;
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
                        Set<Integer> masked =
                                whole ? Set.of() : Set.of(random.nextInt(topology.numRanks()));
                        if (!masked.contains(context.rank())) {
                            context.mask(masked);
                            exchange(
                                    normal.rest(context, masked),
                                    lowLatency.rest(context, masked),
                                    callsOfAMask);
                        }
                        context.buffer().rejoin();
                    }
                });
    }

    /** A dispatch and a combine of each mode in turn, all checked. */
    private static void exchange(NormalRank normal, LowLatencyRank lowLatency, int calls) {
        for (int made = 0; made < calls; made += CALLS_OF_A_TURN) {
            normal.roundTrip();
            lowLatency.roundTrip(LowLatencyFormat.BF16);
        }
    }
}
