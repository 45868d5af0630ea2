package io.deepep.spi;

import io.deepep.Communicator;
import io.deepep.EpTopology;
import java.time.Duration;
import java.util.List;

/**
 * The ranks of one node as a group of their own, numbered by nvlRank. Its calls are collective
 * among the ranks of all nodes, each in its own group.
 *
 * @param all the whole group, not closed with this
 * @param topology this rank's place in it
 */
public record NodeCommunicator(Communicator all, EpTopology topology) implements Communicator {
    /** The number by which messages name a rank of {@code group}: that in the whole group. */
    static int nameOf(Communicator group, int rank) {
        return group instanceof NodeCommunicator node ? node.rankInGroup(rank) : rank;
    }

    /** Whether a rank is alive that a message names: by its number in the whole group. */
    static boolean isNamedAlive(Communicator group, int name) {
        return group instanceof NodeCommunicator node
                ? node.all.isAlive(name)
                : group.isAlive(name);
    }

    @Override
    public int rank() {
        return topology.nvlRank();
    }

    @Override
    public int size() {
        return topology.numNvlRanks();
    }

    private int rankInGroup(int rank) {
        return first() + rank;
    }

    private int first() {
        return topology.rankOf(topology.rdmaRank(), 0);
    }

    @Override
    public List<byte[]> allGather(byte[] message, Duration timeout) {
        return all.allGather(message, timeout).subList(first(), first() + size());
    }

    @Override
    public boolean isAlive(int rank) {
        return all.isAlive(rankInGroup(rank));
    }

    @Override
    public void close() {}
}
