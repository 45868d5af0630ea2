package io.deepep.buffer.memory;

import io.deepep.Config;
import io.deepep.EpTopology;
import io.deepep.cuda.ibgda.IbgdaOptions;
import java.util.List;
import java.util.stream.IntStream;

/**
 * What the network of {@code Network.ibgda()} needs to start a rank.
 *
 * <p>Ranks tell each other by gathers of all of them, one after another. In each, a rank sends its
 * message to every other one at once: one round, and as many messages as there are others.
 *
 * @param numQueues queue pairs that it makes and connects
 * @param memoryBytes of queues and tables
 * @param messages that it sends until the buffer is open
 * @param messageBytes of them all, at most
 */
public record IbgdaStart(int numQueues, long memoryBytes, long messages, long messageBytes) {
    /**
     * Of any buffer on GPUs of several nodes: places, options, who shares a GPU; offers of two
     * heaps, each followed by the news that all are mapped; that all kernels are loaded.
     */
    public static final int GATHERS_OF_BUFFER = 8;

    /** What a rank tells another in these, at most, however many there are. */
    public static final int BYTES_OF_BUFFER = 1024;

    /** All ranks tell each other where their queue pairs are, and then that all are connected. */
    private static final int GATHERS_OF_QUEUES = 2;

    /** Gathers until the buffer is open. */
    public static final int GATHERS = GATHERS_OF_BUFFER + GATHERS_OF_QUEUES;

    /** In normal mode: with one port, to the ranks with this one's place on other nodes. */
    public static IbgdaStart normal(EpTopology topology, Config config) {
        List<Integer> peers =
                IntStream.range(0, topology.numRdmaRanks())
                        .map(node -> node == topology.rdmaRank() ? -1 : node)
                        .boxed()
                        .toList();
        NvshmemQueues queues = NvshmemQueues.normal(config);
        IbgdaOptions.Group group =
                new IbgdaOptions.Group(
                        peers, topology.rdmaRank(), 0, queues.numQpsPerPe(), queues.qpDepth());
        long others = topology.numRanks() - 1L;
        return new IbgdaStart(
                group.numQueues(),
                group.memoryBytes(),
                GATHERS * others,
                others * (group.addressBytes() + BYTES_OF_BUFFER));
    }
}
