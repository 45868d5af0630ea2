package io.deepep.buffer.memory;

import io.deepep.Config;
import io.deepep.EpTopology;
import io.deepep.cuda.ibgda.IbgdaOptions;
import java.util.List;
import java.util.stream.IntStream;

/**
 * What the network of {@code Network.ibgda()} needs to start a rank.
 *
 * @param numQueues queue pairs that it makes and connects
 * @param memoryBytes of queues and tables
 * @param messages that it sends
 * @param messageBytes of them all
 */
public record IbgdaStart(int numQueues, long memoryBytes, long messages, long messageBytes) {
    /** All ranks tell each other where their queue pairs are, and then that all are connected. */
    private static final int GATHERS = 2;

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
                others * group.addressBytes());
    }
}
