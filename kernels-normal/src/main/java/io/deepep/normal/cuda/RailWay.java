package io.deepep.normal.cuda;

import io.deepep.EpTopology;
import io.deepep.cuda.memory.RdmaHeaps;
import java.util.List;
import java.util.stream.IntStream;

/**
 * How a rank reaches another in whose calls ranks may be masked: {@code RailWay}. Where kernels
 * write queues, its peers have the queue pairs of all calls, and those that may stand in for peers,
 * the other ranks of other nodes, have a table of their own.
 *
 * @param reach the other's memory as mapped here, or the table that leads to it; 0 for a library
 * @param place in the table, or the library's number of the other
 */
public record RailWay(long reach, int place) {
    static RailWay to(int rank, EpTopology topology, RdmaHeaps heaps) {
        if (heaps.library().isPresent()) {
            return new RailWay(0, heaps.library().get().peOf(rank));
        }
        if (heaps.queues() == 0) {
            return new RailWay(heaps.addresses().get(rank), 0);
        }
        return rank % topology.numNvlRanks() == topology.nvlRank()
                ? new RailWay(heaps.queues(), rank / topology.numNvlRanks())
                : new RailWay(heaps.standIns().orElse(0), standInPlace(topology, rank));
    }

    /**
     * The place of a rank in the table of stand-ins. It is none that a peer has in the other table,
     * because kernels tell by places whether they send to the same rank.
     */
    public static int standInPlace(EpTopology topology, int rank) {
        return topology.numRdmaRanks() + rank;
    }

    /** The ranks that may stand in for peers of a rank, by place; -1 where there is none. */
    public static List<Integer> standIns(EpTopology topology) {
        return IntStream.range(0, standInPlace(topology, topology.numRanks()))
                .map(place -> place - standInPlace(topology, 0))
                .map(rank -> isStandIn(topology, rank) ? rank : -1)
                .boxed()
                .toList();
    }

    private static boolean isStandIn(EpTopology topology, int rank) {
        return rank >= 0
                && rank / topology.numNvlRanks() != topology.rdmaRank()
                && rank % topology.numNvlRanks() != topology.nvlRank();
    }
}
