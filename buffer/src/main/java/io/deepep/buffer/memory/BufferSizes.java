package io.deepep.buffer.memory;

import io.deepep.BufferOptions;
import io.deepep.Config;
import io.deepep.EpTopology;
import io.deepep.Network;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.normal.NormalNvlLayout;
import io.deepep.normal.NormalRdmaLayout;

/**
 * The sizes of the parts of a rank's symmetric memory. The NVL buffer belongs to normal mode; the
 * RDMA buffer has a part of normal mode and then one of low-latency mode, so that neither mode
 * writes into the other's memory.
 *
 * @param nvlBytes bytes of the NVL buffer
 * @param normalRdmaBytes bytes of normal mode's part of the RDMA buffer
 * @param lowLatencyRdmaBytes bytes of low-latency mode's part of the RDMA buffer
 * @param outboxBytes besides the RDMA buffer, where low-latency mode composes what a network
 *     carries
 * @param layoutHash of all layouts; ranks whose hashes differ must not talk
 */
public record BufferSizes(
        long nvlBytes,
        long normalRdmaBytes,
        long lowLatencyRdmaBytes,
        long outboxBytes,
        long layoutHash) {
    public static BufferSizes of(BufferOptions options) {
        EpTopology topology = options.topology();
        long nvl = 0;
        long normalRdma = 0;
        long lowLatency = 0;
        long outbox = 0;
        long hash = 1;
        if (options.normal() != null) {
            Config envelope = options.dispatchConfig().covering(options.combineConfig());
            var nvlLayout = NormalNvlLayout.of(options.normal(), topology).layout();
            var rdmaLayout = NormalRdmaLayout.of(envelope, options.normal(), topology).layout();
            nvl = nvlLayout.sizeBytes();
            normalRdma = rdmaLayout.sizeBytes();
            hash = 31 * nvlLayout.hash() + rdmaLayout.hash();
        }
        if (options.lowLatency() != null) {
            var layout = LowLatencyLayout.of(options.lowLatency(), topology);
            lowLatency = layout.layout().sizeBytes();
            if (topology.isInternode() && carries(options.network())) {
                outbox = lowLatency; // divided as the heap is
            }
            hash = 31 * hash + layout.layout().hash();
        }
        return new BufferSizes(nvl, normalRdma, lowLatency, outbox, hash);
    }

    /** Whether a network carries what kernels compose for ranks of other nodes. */
    private static boolean carries(Network network) {
        return network instanceof Network.Nvshmem || network instanceof Network.Ibgda;
    }

    long rdmaBytes() {
        return normalRdmaBytes + lowLatencyRdmaBytes;
    }

    /**
     * Returns the options with sizes filled in.
     *
     * @throws IllegalArgumentException if a given size is too small
     */
    public BufferOptions applyTo(BufferOptions options) {
        return options.with(
                options.network(),
                sufficient("numNvlBytes", options.numNvlBytes(), nvlBytes),
                sufficient("numRdmaBytes", options.numRdmaBytes(), rdmaBytes()));
    }

    private static long sufficient(String name, long given, long needed) {
        if (given == 0) {
            return needed;
        }
        if (given < needed) {
            throw new IllegalArgumentException(
                    "%s=%s is less than the %s bytes that the limits need; leave it at 0 or give at least that"
                            .formatted(name, given, needed));
        }
        return given;
    }
}
