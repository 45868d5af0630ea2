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
        Numbers.requirePositive("numRanks", numRanks);
        if (rank < 0 || rank >= numRanks) {
            throw new IllegalArgumentException(
                    "rank=" + rank + " is not in [0, numRanks=" + numRanks + ")");
        }
        requireNodeSize("numNvlRanks", numNvlRanks);
        if (numRanks % numNvlRanks != 0) {
            throw new IllegalArgumentException(
                    "numRanks=" + numRanks + " is not a multiple of numNvlRanks=" + numNvlRanks);
        }
    }

    /** Returns {@code number} if nodes can have so many ranks. */
    static int requireNodeSize(String name, int number) {
        return Numbers.requireIn(name, number, 1, MAX_NVL_RANKS);
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
