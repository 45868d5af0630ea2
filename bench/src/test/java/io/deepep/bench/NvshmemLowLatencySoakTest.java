package io.deepep.bench;

import io.deepep.bench.run.LaunchedGroup;
import io.deepep.testkit.TestNetworks;
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
    void everyRowAndSumIsRight() {
        int ranks = LaunchedGroup.size().orElse(1);
        Assumptions.assumeTrue(
                ranks > RANKS_PER_NODE && ranks % RANKS_PER_NODE == 0,
                "start it by: deepep launch -n 4 -- deepep-tests -c " + getClass().getName());
        CudaLowLatencySoakTest.requireCuda();
        LaunchedGroup.run(
                launched -> {
                    CudaLowLatencySoakTest.soak(
                            TestNetworks.nvshmem(),
                            launched.ranks(ranks),
                            RANKS_PER_NODE,
                            8 * ranks,
                            HIDDEN,
                            4,
                            Long.MAX_VALUE);
                    return null;
                });
    }
}
