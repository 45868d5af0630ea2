package io.deepep.testkit;

/** Work of a stream that was recorded instead of run, to be run any number of times. */
public interface Recording extends AutoCloseable {
    /** Enqueues the work once. */
    void replay();

    @Override
    void close();
}
