package io.deepep.spi;

import io.deepep.Communicator;
import io.deepep.EpTopology;
import java.time.Duration;
import java.util.BitSet;

/**
 * The ranks that share memory, each of which says so at the same time.
 *
 * @param topology this rank's place
 * @param newRanks the ranks that have no memory yet; the others admit them
 * @param timeout how long to wait for the other ranks
 */
public record HeapRanks(
        Communicator communicator, EpTopology topology, BitSet newRanks, Duration timeout) {
    /** Ranks that are all new. */
    public HeapRanks(Communicator communicator, EpTopology topology, Duration timeout) {
        this(communicator, topology, new BitSet(), timeout);
        newRanks.set(0, topology.numRanks());
    }

    /** Whether no rank has memory yet. */
    public boolean allNew() {
        return newRanks.cardinality() == topology.numRanks();
    }

    /** Whether this rank is new. */
    public boolean isNew() {
        return newRanks.get(topology.rank());
    }
}
