package io.deepep.cuda;

import io.deepep.spi.Operation;

/**
 * An operation that runs on a GPU's stream: begin enqueues it, and waits only for the shape of its
 * result; complete waits for the GPU and reports what went wrong there.
 *
 * @param <R> the result record
 */
public interface CudaOperation<R> extends Operation<R> {
    /**
     * The end of the latest run on the GPU, or of the latest replay of the graph it went into; the
     * same object for every run. What went wrong there only {@link #complete} tells.
     */
    DeviceEvent event();

    /**
     * Whether the end of the next run may be that of its stream whenever somebody asks, which costs
     * the GPU nothing and lets the next launch begin early, instead of a recorded point.
     */
    default void endsWithStream(boolean may) {}

    /**
     * Whether {@link #begin} only enqueues, so that it can go into a graph. Preparing the operation
     * never can: it allocates.
     */
    default boolean isCapturable() {
        return true;
    }

    /**
     * With a receive hook, begin enqueues the first half of a run only: this enqueues the second of
     * the oldest run that lacks it. Complete then waits for what was enqueued last.
     *
     * @throws io.deepep.error.CallOrderException if no run lacks it
     */
    default void receive() {
        throw new UnsupportedOperationException("this operation has no receive hook");
    }
}
