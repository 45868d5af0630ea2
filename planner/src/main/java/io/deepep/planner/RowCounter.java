package io.deepep.planner;

import io.deepep.EpTopology;

/** Counts rows token by token. Not thread-safe. */
final class RowCounter {
    final LinkRows rows;

    /** Rows that each rank holds after a dispatch, its own tokens' included. */
    final long[] received;

    private final RowRule rule;
    private final int numNvlRanks;
    private final int numLocalExperts;

    /** The last token that reached each rank and each node: a set that needs no clearing. */
    private final long[] lastAtRank;

    private final long[] lastAtNode;
    private long token;
    private long nodesReached;

    RowCounter(RowRule rule, EpTopology topology, int numExperts) {
        this.rule = rule;
        this.numNvlRanks = topology.numNvlRanks();
        this.numLocalExperts = numExperts / topology.numRanks();
        this.rows = new LinkRows(topology.numRanks());
        this.received = new long[topology.numRanks()];
        this.lastAtRank = new long[topology.numRanks()];
        this.lastAtNode = new long[topology.numRdmaRanks()];
    }

    /** Tokens of all ranks. */
    long numTokens() {
        return token;
    }

    /** Nodes that a token reaches on average, its own included. */
    double nodesReached() {
        return (double) nodesReached / token;
    }

    /** Counts the rows of one token of {@code src}; a selection of -1 is none. */
    void add(int src, long[] experts) {
        token++;
        for (long expert : experts) {
            if (expert < 0) {
                continue;
            }
            int dest = (int) (expert / numLocalExperts);
            boolean repeated = lastAtRank[dest] == token;
            lastAtRank[dest] = token;
            if (repeated && rule != RowRule.ONCE_PER_SELECTION) {
                continue;
            }
            received[dest]++;
            if (rule == RowRule.NODE_THEN_RANK) {
                forward(src, dest);
            } else if (dest != src) {
                send(src, dest);
            }
        }
    }

    private void forward(int src, int dest) {
        int node = dest / numNvlRanks;
        int holder = node * numNvlRanks + src % numNvlRanks;
        if (lastAtNode[node] != token) {
            lastAtNode[node] = token;
            nodesReached++;
            if (holder != src) {
                rows.rdmaOut[src]++;
                rows.rdmaIn[holder]++;
            }
        }
        if (dest != holder) {
            rows.nvlinkOut[holder]++;
            rows.nvlinkIn[dest]++;
        }
    }

    private void send(int src, int dest) {
        boolean sameNode = src / numNvlRanks == dest / numNvlRanks;
        (sameNode ? rows.nvlinkOut : rows.rdmaOut)[src]++;
        (sameNode ? rows.nvlinkIn : rows.rdmaIn)[dest]++;
    }

    /** Adds what another counter of the same group has seen. */
    void addAll(RowCounter other) {
        rows.add(other.rows);
        LinkRows.add(received, other.received);
        nodesReached += other.nodesReached;
        token += other.token;
    }
}
