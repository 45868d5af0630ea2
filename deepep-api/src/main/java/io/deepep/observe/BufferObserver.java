package io.deepep.observe;

/**
 * Sees every dispatch and combine of a buffer, see {@link io.deepep.Buffer.Builder#observer}.
 * Without observers, and without a JFR recording that enables the library's events, a call measures
 * nothing and allocates nothing for this.
 *
 * <p>Observers do not see calls that were refused for their arguments before anything started,
 * replays of a CUDA graph (the host does not see them), and a last run whose end nobody asked for.
 */
@FunctionalInterface
public interface BufferObserver {
    /**
     * Called when a call is over, on the thread that saw its end (of a rank, or of a communication
     * stream), in the order of the calls; keep it short. Exceptions are not passed on; the first
     * one of a buffer's observers is logged.
     */
    void observe(ObservedCall call);
}
