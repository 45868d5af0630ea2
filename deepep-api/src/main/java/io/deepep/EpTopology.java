package io.deepep;

/**
 * A rank's place in the expert-parallel group: {@code rank = rdmaRank * numNvlRanks + nvlRank}.
 *
 * <p>Ranks of a node (equal {@code rdmaRank}) reach each other over NVLink, ranks of different
 * nodes over RDMA: a node is an NVLink domain. The node size is independent of the hosts, so one
 * host can hold several <em>virtual</em> nodes.
 *
 * @param rank this rank, 0 to numRanks - 1
 * @param numRanks ranks of the group
 * @param numNvlRanks ranks per node, 1 to {@value #MAX_NVL_RANKS}; {@link GroupLimits} says how
 *     many each mode takes
 */
public record EpTopology(int rank, int numRanks, int numNvlRanks) {
    /** The most ranks that one node can have. */
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

    /** The rank at the given node and place. */
    public int rankOf(int rdmaRank, int nvlRank) {
        return rdmaRank * numNvlRanks + nvlRank;
    }

    /** The same group as another of its ranks sees it. */
    public EpTopology withRank(int otherRank) {
        return new EpTopology(otherRank, numRanks, numNvlRanks);
    }
}
