package io.deepep.error;

import java.util.Locale;

/**
 * A peer did not come within the configured time, or is known to be gone, so that waiting would be
 * in vain. The buffer that waited is unusable afterwards; other buffers are not affected.
 */
public final class DeepEpTimeoutException extends DeepEpException {
    private static final long serialVersionUID = 1L;
    private final int rank;
    private final int peer;
    private final String phase;

    /**
     * Creates the error.
     *
     * @param rank who waited
     * @param peer for whom
     * @param phase for what
     * @param expected the value that would have ended the wait
     * @param observed the value last seen
     * @param timeoutNanos how long the wait lasted
     */
    public DeepEpTimeoutException(
            int rank, int peer, String phase, long expected, long observed, long timeoutNanos) {
        super(
                "rank "
                        + rank
                        + " waited "
                        + seconds(timeoutNanos)
                        + " s for rank "
                        + peer
                        + " in "
                        + phase
                        + ": expected="
                        + expected
                        + " observed="
                        + observed
                        + "; check that rank "
                        + peer
                        + " is alive and makes the same calls, or raise the timeout",
                null);
        this.rank = rank;
        this.peer = peer;
        this.phase = phase;
    }

    /**
     * The error of a wait that ended early, because whoever is waited for is gone.
     *
     * @param rank who waited
     * @param gone for whom, and why in vain
     * @param phase for what
     * @param waitedNanos how long it has waited
     */
    public DeepEpTimeoutException(int rank, Departure gone, String phase, long waitedNanos) {
        super(
                "rank "
                        + rank
                        + " waited "
                        + seconds(waitedNanos)
                        + " s for rank "
                        + gone.rank()
                        + " in "
                        + phase
                        + ", in vain: "
                        + gone.reason(),
                null);
        this.rank = rank;
        this.peer = gone.rank();
        this.phase = phase;
    }

    private static String seconds(long nanos) {
        return String.format(Locale.ROOT, "%.1f", nanos / 1e9);
    }

    /** The rank that waited. */
    public int rank() {
        return rank;
    }

    /** The rank that did not come. */
    public int peer() {
        return peer;
    }

    /** What was waited for, for example {@code dispatch.header}. */
    public String phase() {
        return phase;
    }
}
