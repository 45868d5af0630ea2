package io.deepep;

/**
 * Work of one device that runs in order. A buffer has its own communication stream ({@link
 * Buffer#communicationStream()}); engines hand theirs to calls through {@link CallOptions}.
 */
public interface Stream {
    /** The device this stream runs on. */
    Device device();

    /** Marks the present end of the stream. */
    Event record();

    /** Makes later work of this stream wait for {@code event} without blocking the caller. */
    void waitFor(Event event);

    /** Blocks the caller until all work so far has finished. */
    void synchronize();
}
