package io.deepep.host;

import io.deepep.Communicator;
import java.time.Duration;
import java.util.List;

/** A rank of another communicator; unless a test adds it, one that cannot exchange references. */
abstract class AroundCommunicator implements Communicator {
    final Communicator inner;

    AroundCommunicator(Communicator inner) {
        this.inner = inner;
    }

    @Override
    public final int rank() {
        return inner.rank();
    }

    @Override
    public final int size() {
        return inner.size();
    }

    @Override
    public List<byte[]> allGather(byte[] message, Duration timeout) {
        return inner.allGather(message, timeout);
    }

    @Override
    public final boolean isAlive(int rank) {
        return inner.isAlive(rank);
    }

    @Override
    public final void close() {
        inner.close();
    }
}
