package io.deepep.testkit;

import io.deepep.Stream;
import io.deepep.Tensor;

/** A stream of a device as an engine would have one. */
public interface TestStream extends AutoCloseable {
    /** The stream that calls are given. */
    Stream stream();

    /** Enqueues a copy between contiguous device tensors of the same type and shape. */
    void copy(Tensor from, Tensor to);

    /** Holds later work of the stream until the returned action has run. */
    Runnable hold();

    @Override
    void close();
}
