package io.deepep.spi;

import io.deepep.Communicator;

/** Some ranks of a group as a group of their own, which count from 0. */
public interface PartOfGroup extends Communicator {
    /** The rank in the whole group, by which messages name it. */
    int rankInGroup(int rank);

    /** How messages name a rank of {@code group}. */
    static int nameOf(Communicator group, int rank) {
        return group instanceof PartOfGroup part ? part.rankInGroup(rank) : rank;
    }
}
