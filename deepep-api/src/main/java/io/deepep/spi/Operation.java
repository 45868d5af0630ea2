package io.deepep.spi;

import io.deepep.Event;

/**
 * A prepared dispatch or combine, whose arguments have been checked and whose outputs are
 * allocated. A buffer runs it whenever its plan is used: always {@link #begin}, then {@link
 * #complete}, on one thread at a time.
 *
 * @param <R> the type of the result
 */
public interface Operation<R> {
    /**
     * Runs the first half. Normal mode: exchanges headers and counts, so that the shape of the
     * result is known; low-latency mode: sends. Throws the failures that all ranks see (routing,
     * capacity, mismatch); {@link #complete} is then not called.
     *
     * @throws io.deepep.error.CallOrderException if earlier runs must be completed first
     */
    void begin();

    /**
     * Runs the second half, after which the tensors of the result are final.
     *
     * @throws io.deepep.error.CallOrderException if no run is left to complete
     */
    void complete();

    /**
     * The result of the latest run, available after {@link #begin}. Returns the same object as last
     * time if nothing in it has changed.
     *
     * @param event done when the tensors are ready
     * @param receiveHook the hook of the result, or null
     */
    R result(Event event, Runnable receiveHook);

    /**
     * Fills in what the latest run moved, as far as the host knows without asking a device. Called
     * only for runs that are observed: after {@link #complete} or, if that does not run, instead of
     * it.
     *
     * @param completed whether {@link #complete} has run, so that everything is known
     */
    void describe(RecordedFacts facts, boolean completed);

    /**
     * Announces that the next run is observed, so that operations on a device gather what the host
     * does not know. Called right before {@link #begin}.
     */
    default RunObservation observe() {
        return this::describe;
    }
}
