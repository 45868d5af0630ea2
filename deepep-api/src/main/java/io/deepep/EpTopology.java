package io.deepep;

/**
 * A rank's place in the expert-parallel group: {@code rank = rdmaRank * numNvlRanks + nvlRank}.
 *
 * <p>A node is an NVLink domain: its ranks (those with the same {@code rdmaRank}) reach each other
 * over NVLink, and ranks of different nodes over RDMA. Nodes need not be hosts: one host can hold
 * several <em>virtual</em> nodes.
 *
 * @param rank this rank, 0 to numRanks - 1
 * @param numRanks ranks of the group
 * @param numNvlRanks ranks per node, 1 to {@value #MAX_NVL_RANKS}
 */
public record EpTopology(int rank, int numRanks, int numNvlRanks) {
    /** Most ranks of a node. */
    public static final int MAX_NVL_RANKS = 72;

    /** Validates the numbers. */
    public EpTopology {
        if (numRanks < 1) {
            throw new IllegalArgumentException("numRanks=" + numRanks + " must be at least 1");
        }
        if (rank < 0 || rank >= numRanks) {
            throw new IllegalArgumentException(
                    "rank=" + rank + " is not in [0, numRanks=" + numRanks + ")");
        }
        if (numNvlRanks < 1 || numNvlRanks > MAX_NVL_RANKS) {
            throw new IllegalArgumentException(
                    "numNvlRanks=" + numNvlRanks + " is not in [1, " + MAX_NVL_RANKS + "]");
        }
        if (numRanks % numNvlRanks != 0) {
            throw new IllegalArgumentException(
                    "numRanks=" + numRanks + " is not a multiple of numNvlRanks=" + numNvlRanks);
        }
    }

    /** Index of this rank's node. */
    public int rdmaRank() {
        return rank / numNvlRanks;
    }

    /** Index of this rank within its node. */
    public int nvlRank() {
        return rank % numNvlRanks;
    }

    /** Number of nodes. */
    public int numRdmaRanks() {
        return numRanks / numNvlRanks;
    }

    /** Whether the group spans more than one node. */
    public boolean isInternode() {
        return numRdmaRanks() > 1;
    }

    /** The rank with the given node index and index within the node. */
    public int rankOf(int rdmaRank, int nvlRank) {
        return rdmaRank * numNvlRanks + nvlRank;
    }

    /** The topology of another rank of the same group. */
    public EpTopology withRank(int otherRank) {
        return new EpTopology(otherRank, numRanks, numNvlRanks);
    }
}
