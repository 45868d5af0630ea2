package io.deepep;

import io.deepep.error.DeepEpException;

/**
 * A point in a {@link Stream}'s order of work.
 *
 * <p>Events of asynchronous calls carry their failure: {@link #synchronize()} throws what the call
 * would have thrown.
 */
public interface Event {
    /** Whether everything before this point has finished, successfully or not. */
    boolean isDone();

    /**
     * Blocks the calling thread until everything before this point has finished.
     *
     * @throws DeepEpException the failure of the operation this event belongs to
     */
    void synchronize();

    /** An event that has always happened. */
    static Event completed() {
        return CompletedEvent.INSTANCE;
    }
}
