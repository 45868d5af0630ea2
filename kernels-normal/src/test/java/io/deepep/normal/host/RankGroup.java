package io.deepep.normal.host;

import io.deepep.Config;
import io.deepep.EpTopology;
import io.deepep.InProcessGroup;
import io.deepep.NormalLimits;
import io.deepep.host.HostContext;
import io.deepep.host.HostHeaps;
import io.deepep.host.HostWait;
import io.deepep.normal.NormalNvlLayout;
import io.deepep.normal.NormalRdmaLayout;
import io.deepep.spi.HeapRanks;
import java.time.Duration;

/**
 * Runs a task on the ranks of a group, each with kernels of its own over memory of exactly the size
 * of the layouts.
 */
record RankGroup(
        int numNodes, int numNvlRanks, NormalLimits limits, Config config, Duration timeout) {
    /** What one rank does. */
    interface Task {
        void run(Rank rank) throws Exception;
    }

    static RankGroup of(int numNodes, int numNvlRanks, NormalLimits limits) {
        // Short rings: they run full and around many times.
        return new RankGroup(
                numNodes, numNvlRanks, limits, new Config(6, 2, 4), Duration.ofSeconds(20));
    }

    int numRanks() {
        return numNodes * numNvlRanks;
    }

    void run(Task task) throws InterruptedException {
        try (InProcessGroup group = InProcessGroup.of(numRanks())) {
            group.run(
                    communicator -> {
                        EpTopology topology =
                                new EpTopology(communicator.rank(), numRanks(), numNvlRanks);
                        Config envelope = config.covering(config);
                        long nvlBytes = NormalNvlLayout.of(limits, topology).layout().sizeBytes();
                        long rdmaBytes =
                                NormalRdmaLayout.of(envelope, limits, topology)
                                        .layout()
                                        .sizeBytes();
                        try (HostHeaps heaps =
                                HostHeaps.open(
                                        new HeapRanks(communicator, topology, timeout),
                                        nvlBytes,
                                        rdmaBytes)) {
                            HostWait waiter =
                                    new HostWait(
                                            topology.rank(), heaps.doorbell(), timeout.toNanos());
                            HostContext context =
                                    new HostContext(topology, heaps.nvl(), heaps.rdma(), waiter);
                            HostNormalKernels kernels =
                                    new HostNormalKernels(context, limits, config, config, false);
                            task.run(new Rank(topology, kernels));
                        }
                    });
        }
    }
}
