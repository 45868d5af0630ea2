package io.deepep.bench;

import io.deepep.Device;
import io.deepep.EpTopology;
import io.deepep.bench.lowlatency.LowLatencySoak;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.Placement;
import io.deepep.bench.run.RankSource;
import io.deepep.cuda.CudaDriver;
import io.deepep.testkit.TestNetworks;
import io.deepep.testkit.conformance.RequiredBackends;
import io.deepep.testkit.routing.RoutingSpec;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * {@link CudaLowLatencySoakTest} over cards that GPUs drive, where {@code
 * -Ddeepep.backends=cuda-ibgda} names them: real ones, or the card in software, which delays
 * entries, stops queues and takes them in any order as it is told.
 */
@Tag("manyCalls")
class IbgdaLowLatencySoakTest {
    @ParameterizedTest
    @CsvSource({"2, 2, 32, 384, 4", "2, 4, 64, 256, 4"})
    void everyRowAndSumIsRight(int nodes, int ranksPerNode, int experts, int hidden, int topk) {
        Assumptions.assumeTrue(
                System.getProperty("deepep.backends", "").contains("cuda-ibgda"),
                "needs network cards: -Ddeepep.backends=cuda-ibgda");
        RequiredBackends.assume(
                Device.Kind.CUDA,
                CudaDriver.isAvailable(),
                CudaDriver.unavailabilityReason().orElse(""));
        int ranks = nodes * ranksPerNode;
        RoutingSpec recipe = RoutingSpec.of(ranks, 1, experts, topk);
        Job job =
                new Job(
                        Placement.cuda(0),
                        new EpTopology(0, ranks, ranksPerNode),
                        TestNetworks.ibgda(),
                        recipe.generate(),
                        recipe,
                        hidden,
                        Duration.ofSeconds(20),
                        List.of());
        LowLatencySoak.run(
                job,
                RankSource.inProcess(ranks),
                Long.getLong("deepep.soak", 300),
                Long.getLong("deepep.soak.seed", 1));
    }
}
