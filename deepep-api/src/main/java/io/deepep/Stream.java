package io.deepep;

import io.deepep.spi.CudaProvider;

/**
 * A sequence of work that runs in order on one device. A buffer has a communication stream ({@link
 * Buffer#communicationStream()}); engines pass their own streams to calls in {@link CallOptions}.
 */
public interface Stream {
    /**
     * Wraps a CUDA stream of another library, such as an engine. The stream stays the property of
     * its creator, who must not destroy it before the last use of this object.
     *
     * @param device the GPU; the stream must belong to its primary context, or to one of its green
     *     contexts
     * @param handle the stream's {@code CUstream} or {@code cudaStream_t}; 0 is the legacy default
     *     stream
     * @throws IllegalArgumentException if {@code device} is the host, or the stream belongs to
     *     another context; of a default stream, the context that is current on this thread decides
     * @throws io.deepep.error.DeepEpUnavailableException if CUDA cannot be used
     */
    static Stream cuda(Device device, long handle) {
        return CudaProvider.of(device).stream(device, handle);
    }

    /** The device this stream runs on. */
    Device device();

    /**
     * The {@code CUstream} of a stream on a GPU, for calls of other libraries.
     *
     * @throws UnsupportedOperationException if this is a stream on the host
     */
    default long cudaHandle() {
        throw new UnsupportedOperationException(
                "a stream on " + device() + " has no CUDA handle; only streams on GPUs have one");
    }

    /** Returns an event that marks the current end of the stream. */
    Event record();

    /**
     * Makes later work on this stream wait for {@code event}, without blocking the calling thread.
     */
    void waitFor(Event event);

    /** Blocks the calling thread until all work that is on the stream now has finished. */
    void synchronize();

    /**
     * From here on, what this thread puts on the stream goes into a graph instead of running. For
     * engines that have something to do in between; others call {@link Graph#capture}.
     *
     * @throws UnsupportedOperationException if this is a stream on the host
     */
    default void beginCapture() {
        throw noGraphs();
    }

    /**
     * Ends a capture, which another library may have begun.
     *
     * @throws io.deepep.error.NativeCallException if the driver refused something meanwhile; the
     *     capture has ended nevertheless
     * @throws UnsupportedOperationException if this is a stream on the host
     */
    default Graph endCapture() {
        throw noGraphs();
    }

    private UnsupportedOperationException noGraphs() {
        return new UnsupportedOperationException(
                "a stream on "
                        + device()
                        + " cannot be captured; only streams on GPUs have graphs");
    }
}
