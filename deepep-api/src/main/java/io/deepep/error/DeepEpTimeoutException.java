package io.deepep.error;

import java.time.Duration;
import java.util.List;
import java.util.Locale;

/**
 * A peer did not come within the configured time, or is known to be gone. The buffer that waited is
 * unusable afterwards, unless time-outs mask ranks; other buffers are not affected.
 */
public final class DeepEpTimeoutException extends DeepEpException {
    private static final String TIMEOUT = "timeout";
    private static final String START_TIMEOUT = "startTimeout";

    /** Instead of nanoseconds, where nobody knows how long a rank has waited. */
    public static final long NOT_KNOWN = -1;

    private static final long serialVersionUID = 1L;
    private final int rank;
    private final int peer;
    private final String phase;
    private final long waitedNanos;

    /** With a space behind it, or empty. */
    private final String howLong;

    private final boolean isAhead;

    /**
     * Creates the error of a wait that a time-out ended.
     *
     * @param rank who waited
     * @param peer for whom
     * @param phase for what
     * @param expected the value that would have ended the wait
     * @param observed the value last seen
     * @param timeoutNanos the time-out: the wait was longer
     */
    public DeepEpTimeoutException(
            int rank, int peer, String phase, long expected, long observed, long timeoutNanos) {
        this(
                rank,
                peer,
                phase,
                expected,
                observed,
                timeoutNanos,
                "more than " + known(timeoutNanos),
                false,
                TIMEOUT);
    }

    private DeepEpTimeoutException(
            int rank,
            int peer,
            String phase,
            long expected,
            long observed,
            long waitedNanos,
            String howLong,
            boolean isAhead,
            String limit) {
        super(
                ("rank %s waited %sfor rank %s in %s: expected=%s observed=%s; check that rank %s is alive"
                                + " and makes the same calls, or raise the %s")
                        .formatted(rank, howLong, peer, phase, expected, observed, peer, limit),
                null);
        this.rank = rank;
        this.peer = peer;
        this.phase = phase;
        this.waitedNanos = Math.max(0, waitedNanos);
        this.howLong = howLong;
        this.isAhead = isAhead;
    }

    /**
     * The error of a rank that comes too late: {@code peer} has left the call without it.
     *
     * @param waitedNanos how long it waited until it noticed, or {@link #NOT_KNOWN}
     */
    public static DeepEpTimeoutException tooLate(
            int rank, int peer, String phase, long expected, long observed, long waitedNanos) {
        String howLong = known(waitedNanos);
        return new DeepEpTimeoutException(
                rank, peer, phase, expected, observed, waitedNanos, howLong, true, TIMEOUT);
    }

    /** The error of a wait for {@code peer} to begin the call, which the start time-out ends. */
    public static DeepEpTimeoutException notBegun(
            int rank, int peer, String phase, long expected, long observed, long startNanos) {
        String howLong = "more than " + known(startNanos);
        return new DeepEpTimeoutException(
                rank, peer, phase, expected, observed, startNanos, howLong, false, START_TIMEOUT);
    }

    /**
     * The error of a wait that ended before its time-out, because {@code peer} was given up: by
     * another rank, or by this one in an earlier call.
     *
     * @param begins whether the peer had yet to begin the call
     * @param waitedNanos how long this rank waited until then, or {@link #NOT_KNOWN}
     */
    public static DeepEpTimeoutException givenUp(
            boolean begins,
            int rank,
            int peer,
            String phase,
            long expected,
            long observed,
            long waitedNanos) {
        return new DeepEpTimeoutException(
                rank,
                peer,
                phase,
                expected,
                observed,
                waitedNanos,
                known(waitedNanos),
                false,
                begins ? START_TIMEOUT : TIMEOUT);
    }

    /**
     * The error of a wait that ended early, because the rank it waited for is gone.
     *
     * @param rank who waited
     * @param gone for whom, and why that rank is gone
     * @param phase for what
     * @param waitedNanos how long it has waited
     */
    public DeepEpTimeoutException(int rank, Departure gone, String phase, long waitedNanos) {
        this(rank, gone, phase, waitedNanos, known(waitedNanos), null);
    }

    private DeepEpTimeoutException(
            int rank,
            Departure gone,
            String phase,
            long waitedNanos,
            String howLong,
            Throwable seen) {
        super(
                "rank %s waited %sfor rank %s in %s, in vain: %s"
                        .formatted(rank, howLong, gone.rank(), phase, gone.reason()),
                seen);
        this.rank = rank;
        this.peer = gone.rank();
        this.phase = phase;
        this.waitedNanos = waitedNanos;
        this.howLong = howLong;
        this.isAhead = false;
    }

    /**
     * The same error, naming the rank that the group knows to be gone. A rank itself sees only
     * which peer did not come, and that peer may have been waiting as well. Returns this error if
     * no other rank is known to be gone.
     *
     * @param departures {@link io.deepep.Communicator#departures}
     */
    public DeepEpTimeoutException blaming(List<Departure> departures) {
        return Departure.culprit(departures, rank, peer)
                .map(
                        gone ->
                                new DeepEpTimeoutException(
                                        rank, gone, phase, waitedNanos, howLong, this))
                .orElse(this);
    }

    private static String known(long nanos) {
        return nanos < 0 ? "" : String.format(Locale.ROOT, "%.1f s ", nanos / 1e9);
    }

    /** The rank that waited. */
    public int rank() {
        return rank;
    }

    /** The rank that did not come. */
    public int peer() {
        return peer;
    }

    /** Whether the peer is alive, but has left the call because this rank was too late. */
    public boolean isPeerAhead() {
        return isAhead;
    }

    /**
     * How long the wait lasted. If a time-out ended it, this is that time-out, of the call or of
     * its start, and the wait was at least as long: a peer that itself announces that it waits gets
     * more time. If the wait ended earlier, because it was in vain, this is the time until then.
     * Zero if that is not known, as on GPUs when another rank had given the peer up, or the peer
     * had left this rank behind; the message then names no time.
     */
    public Duration waited() {
        return Duration.ofNanos(waitedNanos);
    }

    /** What was waited for, for example {@code dispatch.header}. */
    public String phase() {
        return phase;
    }
}
