package io.deepep.cuda.nvshmem;

import io.deepep.EpTopology;

/**
 * Ranks and PEs. In low-latency mode all ranks are PEs of one world. In normal mode each rail, the
 * ranks with the same {@code nvlRank}, is a world of its own, because data crosses nodes within
 * rails only.
 *
 * @param topology as this rank sees it
 * @param world which of the two
 */
public record PeMap(EpTopology topology, World world) {
    /** What a world of PEs consists of. */
    public enum World {
        /** All ranks; PE = rank. */
        GLOBAL,
        /** The ranks of one rail; PE = rdmaRank. */
        RAIL
    }

    /** This rank's PE. */
    public int pe() {
        return peOf(topology.rank());
    }

    /** PEs of this rank's world. */
    public int numPes() {
        return world == World.GLOBAL ? topology.numRanks() : topology.numRdmaRanks();
    }

    /** Whether the ranks of {@code other} are the same PEs, however they are divided into nodes. */
    boolean hasSamePes(PeMap other) {
        boolean global = world == World.GLOBAL && other.world == World.GLOBAL;
        return equals(other) || (global && pe() == other.pe() && numPes() == other.numPes());
    }

    /** Whether a rank is a PE of this rank's world. */
    public boolean includes(int rank) {
        return world == World.GLOBAL || topology.withRank(rank).nvlRank() == topology.nvlRank();
    }

    /**
     * The PE of a rank.
     *
     * @throws IllegalArgumentException if the rank is of another rail's world, or there is none
     */
    public int peOf(int rank) {
        EpTopology of = topology.withRank(rank);
        if (world == World.GLOBAL) {
            return rank;
        }
        if (!includes(rank)) {
            throw new IllegalArgumentException(
                    "rank=%s has nvlRank=%s, so it is not a PE of the world of nvlRank=%s"
                            .formatted(rank, of.nvlRank(), topology.nvlRank()));
        }
        return of.rdmaRank();
    }

    /** The rank that makes the unique id of this rank's world: its PE 0. */
    int rootRank() {
        return world == World.GLOBAL ? 0 : topology.rankOf(0, topology.nvlRank());
    }
}
