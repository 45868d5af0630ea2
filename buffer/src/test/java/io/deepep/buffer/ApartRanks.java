package io.deepep.buffer;

import io.deepep.Communicator;
import java.time.Duration;
import java.util.List;

/**
 * A rank that is a thread, and is taken for a process on a host with some of the ranks.
 *
 * @param lengths of its messages, in order
 */
record ApartRanks(Communicator threads, int localSize, List<Integer> lengths)
        implements Communicator {
    @Override
    public int rank() {
        return threads.rank();
    }

    @Override
    public int size() {
        return threads.size();
    }

    @Override
    public int localRank() {
        return rank() % localSize;
    }

    @Override
    public List<byte[]> allGather(byte[] message, Duration timeout) {
        lengths.add(message.length);
        return threads.allGather(message, timeout);
    }

    @Override
    public boolean isAlive(int rank) {
        return threads.isAlive(rank);
    }

    @Override
    public void close() {}
}
