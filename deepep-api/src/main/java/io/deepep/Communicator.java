package io.deepep;

import java.time.Duration;
import java.util.List;

/**
 * What a {@link Buffer} needs to start: a numbered group that can exchange small messages. Only
 * used when buffers are opened and closed, never by dispatch and combine.
 *
 * <p>One instance belongs to one rank. Every method but {@link #rank()}, {@link #size()} and {@link
 * #isAlive(int)} is collective: all ranks call it, in the same order. Implementations are
 * in-process ({@link InProcessGroup}) or between processes.
 */
public interface Communicator extends AutoCloseable {
    /** This rank, 0 to size - 1. */
    int rank();

    /** Number of ranks. */
    int size();

    /**
     * Gives every rank everybody's message, in rank order.
     *
     * @param message this rank's; any length, may differ between ranks
     * @param timeout how long to wait for the others
     * @throws io.deepep.error.DeepEpTimeoutException naming a rank that did not come
     */
    List<byte[]> allGather(byte[] message, Duration timeout);

    /**
     * Waits for all ranks.
     *
     * @throws io.deepep.error.DeepEpTimeoutException naming a rank that did not come
     */
    default void barrier(Duration timeout) {
        allGather(new byte[0], timeout);
    }

    /** Whether {@code rank} is believed to be alive. */
    boolean isAlive(int rank);

    /** Whether all ranks are threads of this JVM, so that {@link #exchangeReferences} works. */
    default boolean isInProcess() {
        return false;
    }

    /**
     * Gives every rank everybody's object, in rank order, by reference.
     *
     * @throws UnsupportedOperationException unless {@link #isInProcess()}
     */
    default List<Object> exchangeReferences(Object mine, Duration timeout) {
        throw new UnsupportedOperationException("ranks of " + this + " live in several processes");
    }

    /** Leaves the group. Does not wait for the others. */
    @Override
    void close();
}
