package io.deepep.normal.host;

import io.deepep.EpTopology;
import io.deepep.normal.NormalHeader;
import io.deepep.normal.NormalHeaders;

/**
 * What one rank remembers of a dispatch: where its own tokens went within its node and which other
 * nodes got them, and which rows it forwarded for the ranks with its nvlRank on other nodes.
 * Overwritten when the plan is dispatched again.
 */
final class Routing {
    private final EpTopology topology;
    private final RoutingScan scan;
    private final int numTokens;
    private final int[] rows;
    private final int[] forwardBase;
    private final ForwardedTokens[] forwarded;

    /** The tokens of one remote source that this rank forwarded, in their order. */
    static final class ForwardedTokens {
        private final int numNvlRanks;
        private final int[] sourceToken;
        private final byte[] masks;
        private final int[] rows;
        private int count;
        private int numSourceTokens;

        private ForwardedTokens(int maxTokens, int numNvlRanks) {
            this.numNvlRanks = numNvlRanks;
            this.sourceToken = new int[maxTokens];
            this.masks = new byte[maxTokens];
            this.rows = new int[maxTokens * numNvlRanks];
        }

        void put(int position, int token, int mask) {
            sourceToken[position] = token;
            masks[position] = (byte) mask;
        }

        void putRow(int position, int nvlRank, int row) {
            rows[position * numNvlRanks + nvlRank] = row;
        }

        int mask(int position) {
            return masks[position] & 0xff;
        }

        int row(int position, int nvlRank) {
            return rows[position * numNvlRanks + nvlRank];
        }

        void count(int tokens) {
            count = tokens;
        }

        int numSourceTokens() {
            return numSourceTokens;
        }

        /** First position whose token is at least {@code token}. */
        int positionOf(int token) {
            int low = 0;
            int high = count;
            while (low < high) {
                int middle = (low + high) >>> 1;
                if (sourceToken[middle] < token) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            return low;
        }
    }

    Routing(EpTopology topology, int numTokens, int numExperts, int maxTokens) {
        this.topology = topology;
        this.numTokens = numTokens;
        this.scan = new RoutingScan(topology, numTokens, numExperts);
        this.rows = new int[numTokens * topology.numNvlRanks()];
        this.forwardBase = new int[topology.numRanks()];
        this.forwarded = new ForwardedTokens[topology.numRdmaRanks()];
        for (int node = 0; node < forwarded.length; node++) {
            forwarded[node] =
                    node == topology.rdmaRank()
                            ? null
                            : new ForwardedTokens(maxTokens, topology.numNvlRanks());
        }
    }

    RoutingScan scan() {
        return scan;
    }

    int numTokens() {
        return numTokens;
    }

    /**
     * Gives every token that stays in the node its rows, and every forwarded source the rows where
     * its tokens begin.
     */
    void assignRows(NormalHeaders headers) {
        int numNvlRanks = topology.numNvlRanks();
        for (int node = 0; node < topology.numRdmaRanks(); node++) {
            int source = topology.rankOf(node, topology.nvlRank());
            for (int nvlRank = 0; nvlRank < numNvlRanks; nvlRank++) {
                int first = headers.firstRow(source, topology.rankOf(topology.rdmaRank(), nvlRank));
                forwardBase[node * numNvlRanks + nvlRank] = first;
            }
            if (forwarded[node] != null) {
                forwarded[node].numSourceTokens =
                        (int) headers.field(source, NormalHeader.NUM_TOKENS);
            }
        }
        for (int nvlRank = 0; nvlRank < numNvlRanks; nvlRank++) {
            int next = firstRow(topology.rdmaRank(), nvlRank);
            for (int token = 0; token < numTokens; token++) {
                if ((nodeMask(token) >>> nvlRank & 1) != 0) {
                    rows[token * numNvlRanks + nvlRank] = next++;
                }
            }
        }
    }

    /**
     * The first row, at {@code nvlRank} of this node, of the source on {@code node} with this
     * rank's nvlRank.
     */
    int firstRow(int node, int nvlRank) {
        return forwardBase[node * topology.numNvlRanks() + nvlRank];
    }

    /** The nvlRanks of this node that {@code token} goes to, as bits. */
    int nodeMask(int token) {
        return scan.mask(token, topology.rdmaRank());
    }

    /** The row of {@code token} at {@code nvlRank} of this node; only if it goes there. */
    int row(int token, int nvlRank) {
        return rows[token * topology.numNvlRanks() + nvlRank];
    }

    /** What was forwarded from {@code node}. */
    ForwardedTokens forwarded(int node) {
        return forwarded[node];
    }

    /**
     * First of the {@code total} tokens that belongs to {@code channel}; for {@code channel ==
     * numChannels} their end.
     */
    static int channelStart(int total, int channel, int numChannels) {
        return (int) ((long) total * channel / numChannels);
    }
}
