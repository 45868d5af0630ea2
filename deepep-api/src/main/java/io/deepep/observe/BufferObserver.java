package io.deepep.observe;

/**
 * Receives a report of every dispatch and combine of a buffer, see {@link
 * io.deepep.Buffer.Builder#observer}. Without observers, and without a JFR recording that enables
 * the library's events, calls neither measure nor allocate anything for reports.
 *
 * <p>Not reported are calls that were refused for their arguments before anything started, replays
 * of a CUDA graph, which the host does not see, and the last run of a plan on a GPU if its event
 * was never asked for.
 */
@FunctionalInterface
public interface BufferObserver {
    /**
     * Called after each call, in the order in which they end (a receive hook may run after later
     * calls), on the thread that saw the end: the rank's thread or that of the communication
     * stream. Must return quickly, and cannot close a buffer. What this throws does not reach the
     * call; only the first exception of a buffer is logged.
     */
    void observe(ObservedCall call);
}
