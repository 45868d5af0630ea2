package io.deepep;

import io.deepep.spi.CudaProvider;

/**
 * Work of one device that runs in order. A buffer has its own communication stream ({@link
 * Buffer#communicationStream()}); engines hand theirs to calls through {@link CallOptions}.
 */
public interface Stream {
    /**
     * A CUDA stream that another library made, such as an engine's. A view: whoever made the stream
     * destroys it, after the last use of this object.
     *
     * @param device the GPU; the stream belongs to its primary context
     * @param handle the stream's {@code CUstream} or {@code cudaStream_t}; 0 is the legacy default
     *     stream
     * @throws IllegalArgumentException if {@code device} is the host, or the stream belongs to
     *     another context
     * @throws io.deepep.error.DeepEpUnavailableException if CUDA cannot be used here
     */
    static Stream cuda(Device device, long handle) {
        return CudaProvider.of(device).stream(device, handle);
    }

    /** The device this stream runs on. */
    Device device();

    /**
     * The {@code CUstream} of a GPU's stream, for calls of other libraries.
     *
     * @throws UnsupportedOperationException if this is a stream of the host
     */
    default long cudaHandle() {
        throw new UnsupportedOperationException(
                "a stream of " + device() + " has no CUDA handle; streams of a GPU have one");
    }

    /** Marks the current end of the stream. */
    Event record();

    /** Makes later work of this stream wait for {@code event} without blocking the caller. */
    void waitFor(Event event);

    /** Blocks the caller until all work so far has finished. */
    void synchronize();
}
