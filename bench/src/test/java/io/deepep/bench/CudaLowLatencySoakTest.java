package io.deepep.bench;

import io.deepep.EpTopology;
import io.deepep.Network;
import io.deepep.bench.lowlatency.LowLatencySoak;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.Placement;
import io.deepep.bench.run.RankSource;
import io.deepep.cuda.CudaDriver;
import io.deepep.testkit.conformance.RequiredBackends;
import io.deepep.testkit.routing.RoutingSpec;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Chained exchanges of low-latency mode, on one node and across virtual ones, a few hundred, or as
 * many as {@code -Ddeepep.soak} says; {@code -Ddeepep.soak.seed} draws others. A rank is masked, or
 * comes back, after each 50, or as many as {@code -Ddeepep.soak.mask} says.
 */
@Tag("manyCalls")
class CudaLowLatencySoakTest {
    @BeforeEach
    void needsCuda() {
        requireCuda();
    }

    static void requireCuda() {
        RequiredBackends.assumeCuda(CudaDriver.unavailabilityReason());
    }

    @ParameterizedTest
    @CsvSource({
        "1, 1, 16, 256, 4",
        "1, 3, 12, 384, 3",
        "1, 4, 32, 512, 4",
        "1, 8, 64, 256, 4",
        "2, 2, 32, 384, 4",
        "2, 4, 64, 256, 4"
    })
    void everyRowAndSumIsRight(int nodes, int ranksPerNode, int experts, int hidden, int topk) {
        RankSource ranks = RankSource.inProcess(nodes * ranksPerNode);
        soak(Network.auto(), ranks, ranksPerNode, experts, hidden, topk, Long.MAX_VALUE);
    }

    @ParameterizedTest
    @CsvSource({"1, 2, 16, 256, 4", "1, 4, 32, 512, 4", "2, 2, 32, 384, 4"})
    void andAlsoWhileMasksChange(int nodes, int ranksPerNode, int experts, int hidden, int topk) {
        long pairsOfAMask = Long.getLong("deepep.soak.mask", 50);
        RankSource ranks = RankSource.inProcess(nodes * ranksPerNode);
        soak(Network.auto(), ranks, ranksPerNode, experts, hidden, topk, pairsOfAMask);
    }

    static void soak(
            Network network,
            RankSource ranks,
            int ranksPerNode,
            int experts,
            int hidden,
            int topk,
            long pairsOfAMask) {
        RoutingSpec recipe = RoutingSpec.of(ranks.numRanks(), 1, experts, topk);
        Job job =
                new Job(
                        Placement.cuda(0),
                        new EpTopology(0, ranks.numRanks(), ranksPerNode),
                        network,
                        recipe.generate(),
                        recipe,
                        hidden,
                        Duration.ofSeconds(30),
                        false,
                        List.of());
        LowLatencySoak.run(
                job,
                ranks,
                Long.getLong("deepep.soak", 300),
                Long.getLong("deepep.soak.seed", 1),
                pairsOfAMask);
    }
}
