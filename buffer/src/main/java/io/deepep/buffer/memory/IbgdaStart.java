package io.deepep.buffer.memory;

import io.deepep.Config;
import io.deepep.EpTopology;
import io.deepep.cuda.ibgda.IbgdaOptions;

/**
 * What a rank needs to start over {@code Network.ibgda()}.
 *
 * <p>The ranks exchange data by all-gathers, one after another. In each, a rank sends its message
 * to all others at once: one round, with one message for each other rank.
 *
 * @param numQueues queue pairs that the rank creates and connects
 * @param memoryBytes GPU memory of queues and tables, in bytes
 * @param messages messages that it sends until the buffer is open
 * @param messageBytes bytes of these messages together, at most
 */
public record IbgdaStart(int numQueues, long memoryBytes, long messages, long messageBytes) {
    /**
     * All-gathers of any buffer on GPUs of several nodes: places, options, who shares a GPU; offers
     * of two heaps, each followed by a confirmation that all are mapped; a confirmation that all
     * kernels are loaded.
     */
    public static final int GATHERS_OF_BUFFER = 8;

    /**
     * Most bytes that a rank sends to another in these all-gathers, whatever the number of ranks.
     */
    public static final int BYTES_OF_BUFFER = 1024;

    /** All ranks tell each other where their queue pairs are, and then that all are connected. */
    private static final int GATHERS_OF_QUEUES = 2;

    /** Number of all-gathers until the buffer is open. */
    public static final int GATHERS = GATHERS_OF_BUFFER + GATHERS_OF_QUEUES;

    /**
     * The needs of normal mode with one port per rank, to the ranks with the same nvlRank on other
     * nodes.
     */
    public static IbgdaStart normal(EpTopology topology, Config config) {
        NvshmemQueues queues = NvshmemQueues.normal(config);
        IbgdaOptions.Group group =
                new IbgdaOptions.Group(
                        IbgdaBuffer.railPeers(topology),
                        topology.rdmaRank(),
                        0,
                        queues.numQpsPerPe(),
                        queues.qpDepth());
        long others = topology.numRanks() - 1L;
        return new IbgdaStart(
                group.numQueues(),
                group.memoryBytes(),
                GATHERS * others,
                others * (group.addressBytes() + BYTES_OF_BUFFER));
    }
}
