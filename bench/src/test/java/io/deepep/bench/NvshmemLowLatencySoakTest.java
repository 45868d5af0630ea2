package io.deepep.bench;

import io.deepep.EpTopology;
import io.deepep.bench.lowlatency.LowLatencySoak;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.LaunchedGroup;
import io.deepep.bench.run.Placement;
import io.deepep.testkit.TestNetworks;
import io.deepep.testkit.routing.RoutingSpec;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/**
 * {@link CudaLowLatencySoakTest} across virtual nodes of two ranks over NVSHMEM, for processes that
 * {@code deepep launch} started, an even number of them.
 */
class NvshmemLowLatencySoakTest {
    private static final int RANKS_PER_NODE = 2;
    private static final int HIDDEN = 512;

    @Test
    void everyRowAndSumIsRight() throws Exception {
        int ranks = LaunchedGroup.size().orElse(1);
        Assumptions.assumeTrue(
                ranks > RANKS_PER_NODE && ranks % RANKS_PER_NODE == 0,
                "start it by: deepep launch -n 4 -- deepep-tests -c " + getClass().getName());
        CudaLowLatencySoakTest.requireCuda();
        RoutingSpec recipe = RoutingSpec.of(ranks, 1, 8 * ranks, 4);
        Job job =
                new Job(
                        Placement.cuda(0),
                        new EpTopology(0, ranks, RANKS_PER_NODE),
                        TestNetworks.nvshmem(),
                        recipe.generate(),
                        recipe,
                        HIDDEN,
                        Duration.ofSeconds(30),
                        false,
                        List.of());
        LaunchedGroup.run(
                launched -> {
                    LowLatencySoak.run(
                            job,
                            launched.ranks(ranks),
                            Long.getLong("deepep.soak", 300),
                            Long.getLong("deepep.soak.seed", 1),
                            Long.MAX_VALUE);
                    return null;
                });
    }
}
