package io.deepep.spi;

import io.deepep.Event;

/**
 * One prepared dispatch or combine: arguments checked, outputs allocated. A buffer runs it as often
 * as its plan is used, always {@link #begin} then {@link #complete}, on one thread at a time.
 *
 * @param <R> the result record
 */
public interface Operation<R> {
    /**
     * The first half. Normal mode: exchanges headers and counts, so that the result's shape is
     * known; low latency: sends. Throws what concerns every rank (routing, capacity, mismatch);
     * then {@link #complete} is not called.
     *
     * @throws CallOrderException if earlier runs must be completed first
     */
    void begin();

    /**
     * The second half: afterwards the result's tensors are final.
     *
     * @throws CallOrderException if no run is left to complete
     */
    void complete();

    /**
     * The result of the latest run; may be asked for after {@link #begin}. Returns the same object
     * as last time if nothing in it changed.
     *
     * @param event when the tensors are ready
     * @param receiveHook the hook to hand out, or null
     */
    R result(Event event, Runnable receiveHook);

    /**
     * Fills in what the latest run moved, as far as the host knows without asking a device. Called
     * only while somebody observes, after {@link #complete} or, where that has not run, in its
     * place.
     *
     * @param completed whether {@link #complete} has run, so that everything is known
     */
    void describe(RecordedFacts facts, boolean completed);

    /**
     * Says that the next run is observed. Operations on a device then gather what the host does not
     * know; runs that are not announced are spared that. Called right before {@link #begin}.
     */
    default RunObservation observe() {
        return this::describe;
    }
}
