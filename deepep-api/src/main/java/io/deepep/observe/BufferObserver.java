package io.deepep.observe;

/**
 * Sees every dispatch and combine of a buffer, see {@link io.deepep.Buffer.Builder#observer}.
 * Without observers, and without a JFR recording that asks for the library's events, nothing of a
 * call is measured and nothing is allocated for it.
 *
 * <p>Not seen: calls that were refused for their arguments before anything started, replays of a
 * CUDA graph (the host does not see them), and a last run whose end nobody asked for.
 */
@FunctionalInterface
public interface BufferObserver {
    /**
     * A call is over. Runs on the thread that saw its end (of a rank, or of a communication
     * stream), in the order of the calls; keep it short. What it throws goes no further; the first
     * failure of a buffer's observers is logged.
     */
    void observe(ObservedCall call);
}
