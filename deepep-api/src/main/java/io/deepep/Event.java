package io.deepep;

import io.deepep.error.DeepEpException;
import io.deepep.spi.CudaProvider;

/**
 * A point in a {@link Stream}'s order of work.
 *
 * <p>Events of asynchronous calls carry their failure: {@link #synchronize()} throws what the call
 * would have thrown.
 */
public interface Event {
    /**
     * A CUDA event that another library made, such as an engine's. Each use waits for what the
     * event was recorded for most recently. A view: whoever made the event destroys it, after the
     * last use of this object.
     *
     * @param device the GPU; the event belongs to its primary context
     * @param handle the event's {@code CUevent} or {@code cudaEvent_t}
     * @throws IllegalArgumentException if {@code device} is the host, or the handle is 0
     * @throws io.deepep.error.DeepEpUnavailableException if CUDA cannot be used here
     */
    static Event cuda(Device device, long handle) {
        return CudaProvider.of(device).event(device, handle);
    }

    /**
     * The {@code CUevent} of a GPU's event, for {@code cuStreamWaitEvent} of other libraries. Keep
     * the result that this event came with reachable until the wait is enqueued. Only {@link
     * #synchronize} reports a failure of the call.
     *
     * @throws UnsupportedOperationException if this is an event of the host
     */
    default long cudaHandle() {
        throw new UnsupportedOperationException(
                "an event of the host has no CUDA handle; synchronize() it instead");
    }

    /** Whether everything before this point has finished, successfully or not. */
    boolean isDone();

    /**
     * Blocks the calling thread until everything before this point has finished.
     *
     * @throws DeepEpException the failure of the operation this event belongs to
     */
    void synchronize();

    /** An event that is always done. */
    static Event completed() {
        return CompletedEvent.INSTANCE;
    }
}
