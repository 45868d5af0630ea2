package io.deepep;

import io.deepep.error.DeepEpException;

/**
 * Work that was captured from a {@link Stream} of a GPU, to be run any number of times with one
 * call each: a CUDA graph. Which calls of a {@link Buffer} can be captured, and what else holds for
 * them, is in {@code docs/cuda.md}.
 */
public interface Graph extends AutoCloseable {
    /**
     * Captures what {@code work} puts on the stream, and on streams that it makes wait for this one
     * and join it again. Nothing runs. The work must not wait for the GPU. The arguments of kernels
     * are copied, the memory that they point to is not.
     *
     * @param work run once, by this thread; if it throws, nothing is captured
     * @throws UnsupportedOperationException if the stream is on the host
     * @throws DeepEpException if the driver refuses something that the work did
     */
    static Graph capture(Stream stream, Runnable work) {
        stream.beginCapture();
        try {
            work.run();
        } catch (Throwable failure) { // other languages throw checked ones too
            try {
                stream.endCapture().close();
            } catch (DeepEpException spoiled) {
                failure.addSuppressed(spoiled);
            }
            throw failure;
        }
        return stream.endCapture();
    }

    /** Puts the work on the stream that it was captured from, once; allocates nothing. */
    void replay();

    /** Destroys the graph; replays that are on a stream already finish. Idempotent. */
    @Override
    void close();
}
