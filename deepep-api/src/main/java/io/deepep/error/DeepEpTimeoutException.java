package io.deepep.error;

import java.time.Duration;
import java.util.List;
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
    private final long waitedNanos;
    private final boolean isAhead;

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
        this(rank, peer, phase, expected, observed, timeoutNanos, false);
    }

    private DeepEpTimeoutException(
            int rank,
            int peer,
            String phase,
            long expected,
            long observed,
            long timeoutNanos,
            boolean isAhead) {
        super(
                ("rank %s waited %s s for rank %s in %s: expected=%s observed=%s; check that rank %s is alive"
                                + " and makes the same calls, or raise the timeout")
                        .formatted(
                                rank, seconds(timeoutNanos), peer, phase, expected, observed, peer),
                null);
        this.rank = rank;
        this.peer = peer;
        this.phase = phase;
        this.waitedNanos = timeoutNanos;
        this.isAhead = isAhead;
    }

    /** The error of a rank that comes too late: {@code peer} has left the call without it. */
    public static DeepEpTimeoutException tooLate(
            int rank, int peer, String phase, long expected, long observed, long timeoutNanos) {
        return new DeepEpTimeoutException(
                rank, peer, phase, expected, observed, timeoutNanos, true);
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
        this(rank, gone, phase, waitedNanos, null);
    }

    private DeepEpTimeoutException(
            int rank, Departure gone, String phase, long waitedNanos, Throwable seen) {
        super(
                "rank %s waited %s s for rank %s in %s, in vain: %s"
                        .formatted(rank, seconds(waitedNanos), gone.rank(), phase, gone.reason()),
                seen);
        this.rank = rank;
        this.peer = gone.rank();
        this.phase = phase;
        this.waitedNanos = waitedNanos;
        this.isAhead = false;
    }

    /**
     * The same, naming whom the group knows to be gone: what a rank sees by itself is only who did
     * not come, which may be somebody who waited as well. This, if nobody else is known.
     *
     * @param departures {@link io.deepep.Communicator#departures}
     */
    public DeepEpTimeoutException blaming(List<Departure> departures) {
        return Departure.culprit(departures, rank, peer)
                .map(gone -> new DeepEpTimeoutException(rank, gone, phase, waitedNanos, this))
                .orElse(this);
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

    /** Whether the peer is there, but has left this rank behind, which was too late. */
    public boolean isPeerAhead() {
        return isAhead;
    }

    /**
     * How long the wait lasted: the time-out of the call, or less if it was known to be in vain.
     */
    public Duration waited() {
        return Duration.ofNanos(waitedNanos);
    }

    /** What was waited for, for example {@code dispatch.header}. */
    public String phase() {
        return phase;
    }
}
