package io.deepep;

import io.deepep.error.DeepEpException;
import io.deepep.spi.CudaProvider;

/**
 * A point in the sequence of work on a {@link Stream}.
 *
 * <p>If an asynchronous call fails, {@link #synchronize()} of its event throws the failure.
 */
public interface Event {
    /**
     * Wraps a CUDA event of another library, such as an engine. Each use waits for the most recent
     * record of the event. The event stays the property of its creator, who must not destroy it
     * before the last use of this object.
     *
     * @param device the GPU; the event must belong to its primary context
     * @param handle the event's {@code CUevent} or {@code cudaEvent_t}
     * @throws IllegalArgumentException if {@code device} is the host, or {@code handle} is 0
     * @throws io.deepep.error.DeepEpUnavailableException if CUDA cannot be used
     */
    static Event cuda(Device device, long handle) {
        return CudaProvider.of(device).event(device, handle);
    }

    /**
     * The {@code CUevent} of an event on a GPU, for {@code cuStreamWaitEvent}. Keep the result that
     * this event came with reachable until the wait is enqueued. Only {@link #synchronize} reports
     * a failure of the call.
     *
     * @throws UnsupportedOperationException if this is an event on the host
     */
    default long cudaHandle() {
        throw new UnsupportedOperationException(
                "an event on the host has no CUDA handle; call synchronize() instead");
    }

    /** Whether everything before this point has finished, successfully or not. */
    boolean isDone();

    /**
     * Blocks the calling thread until everything before this point has finished.
     *
     * @throws DeepEpException if the call that this event belongs to failed
     */
    void synchronize();

    /** An event that is always done. */
    static Event completed() {
        return CompletedEvent.COMPLETED;
    }
}
