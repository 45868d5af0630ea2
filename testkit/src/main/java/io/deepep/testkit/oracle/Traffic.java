package io.deepep.testkit.oracle;

import io.deepep.EpTopology;
import io.deepep.testkit.routing.Routing;

/**
 * Rows that a rank's tokens send over each kind of link: the logical traffic of an operation, in
 * rows. Combine takes the same ways back.
 *
 * @param nvlinkRows rows between ranks of one node
 * @param rdmaRows rows between nodes
 */
public record Traffic(long nvlinkRows, long rdmaRows) {
    /**
     * The rows of {@code src}'s tokens in normal mode: over RDMA once for each node other than its
     * own, to the rank with its own nvlRank there; over NVLink from the rank that has the token in
     * each node to the other destination ranks of that node.
     */
    public static Traffic normal(Routing routing, EpTopology topology, int src) {
        EpTopology own = topology.withRank(src);
        long nvlink = 0;
        long rdma = 0;
        for (int token = 0; token < routing.numTokens(src); token++) {
            for (int node = 0; node < own.numRdmaRanks(); node++) {
                boolean reached = false;
                int holder = own.rankOf(node, own.nvlRank());
                for (int nvlRank = 0; nvlRank < own.numNvlRanks(); nvlRank++) {
                    int rank = own.rankOf(node, nvlRank);
                    boolean goes = routing.goesTo(src, token, rank);
                    reached |= goes;
                    nvlink += goes && rank != holder ? 1 : 0;
                }
                rdma += reached && node != own.rdmaRank() ? 1 : 0;
            }
        }
        return new Traffic(nvlink, rdma);
    }

    /**
     * The rows of {@code src}'s tokens in low-latency mode: once for each other destination rank.
     */
    public static Traffic lowLatency(Routing routing, EpTopology topology, int src) {
        return direct(topology, src, routing.tokensPerRank()[src]);
    }

    /** So many rows between {@code rank} and each rank, itself left out. */
    public static Traffic direct(EpTopology topology, int rank, int[] rows) {
        EpTopology own = topology.withRank(rank);
        long nvlink = 0;
        long rdma = 0;
        for (int other = 0; other < rows.length; other++) {
            if (own.withRank(other).rdmaRank() != own.rdmaRank()) {
                rdma += rows[other];
            } else if (other != rank) {
                nvlink += rows[other];
            }
        }
        return new Traffic(nvlink, rdma);
    }

    /** The traffic of both. */
    public Traffic plus(Traffic other) {
        return new Traffic(nvlinkRows + other.nvlinkRows, rdmaRows + other.rdmaRows);
    }
}
