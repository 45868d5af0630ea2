package io.deepep.error;

import java.time.Duration;
import java.util.List;
import java.util.Locale;

/**
 * A rank waited for a peer that did not come within the time-out, or that is known to be gone. The
 * buffer that waited refuses further calls, unless it {@linkplain
 * io.deepep.Buffer.Builder#maskTimedOutRanks masks timed-out ranks}; other buffers are not
 * affected.
 */
public final class DeepEpTimeoutException extends DeepEpException {
    private static final String TIMEOUT = "timeout";
    private static final String START_TIMEOUT = "startTimeout";

    /** Value that stands for an unknown waiting time. */
    public static final long NOT_KNOWN = -1;

    private static final long serialVersionUID = 1L;
    private final int rank;
    private final int peer;
    private final String phase;
    private final long waitedNanos;

    /** Ends with a space, or is empty. */
    private final String howLong;

    private final boolean isAhead;

    /** Whether the message says why the peer is gone. */
    private final boolean isGone;

    /**
     * Creates the exception for a wait that a time-out ended.
     *
     * @param rank the rank that waited
     * @param peer the rank that it waited for
     * @param phase what it waited for, see {@link #phase}
     * @param expected the value that would have ended the wait
     * @param observed the value last seen
     * @param timeoutNanos the time-out; the wait was at least as long
     */
    public DeepEpTimeoutException(
            int rank, int peer, String phase, long expected, long observed, long timeoutNanos) {
        this(rank, peer, phase, expected, observed, timeoutNanos, TIMEOUT);
    }

    private DeepEpTimeoutException(
            int rank,
            int peer,
            String phase,
            long expected,
            long observed,
            long limitNanos,
            String limit) {
        this(
                "rank %s waited more than %sfor rank %s in %s: expected=%s observed=%s; %s"
                        .formatted(
                                rank,
                                known(limitNanos),
                                peer,
                                phase,
                                expected,
                                observed,
                                cure(peer, limit)),
                null,
                rank,
                peer,
                phase,
                limitNanos,
                "more than " + known(limitNanos),
                false,
                false);
    }

    private DeepEpTimeoutException(
            String message,
            Throwable cause,
            int rank,
            int peer,
            String phase,
            long waitedNanos,
            String howLong,
            boolean isAhead,
            boolean isGone) {
        super(message, cause);
        this.rank = rank;
        this.peer = peer;
        this.phase = phase;
        this.waitedNanos = Math.max(0, waitedNanos);
        this.howLong = howLong;
        this.isAhead = isAhead;
        this.isGone = isGone;
    }

    /**
     * Creates the exception for a rank that came too late: {@code peer} has left the call without
     * it.
     *
     * @param begins whether {@code rank} waited for others to begin the call
     * @param call the call, such as {@code dispatch}
     * @param left what the peer did, as part of a sentence
     * @param waitedNanos how long {@code rank} waited until it noticed, or {@link #NOT_KNOWN}
     */
    public static DeepEpTimeoutException tooLate(
            boolean begins,
            int rank,
            int peer,
            String call,
            String phase,
            String left,
            long waitedNanos) {
        String message =
                begins
                        ? "rank %s began %s too late: rank %s %s; begin calls together, or raise %s"
                                .formatted(rank, call, peer, left, START_TIMEOUT)
                        : "rank %s came too late in %s: rank %s %s; look for what delays rank %s within calls, or raise %s"
                                .formatted(rank, phase, peer, left, rank, TIMEOUT);
        return new DeepEpTimeoutException(
                message, null, rank, peer, phase, waitedNanos, known(waitedNanos), true, false);
    }

    /**
     * Creates the exception for a wait for {@code peer} to begin the call that the start time-out
     * ended.
     */
    public static DeepEpTimeoutException notBegun(
            int rank, int peer, String phase, long expected, long observed, long startNanos) {
        return new DeepEpTimeoutException(
                rank, peer, phase, expected, observed, startNanos, START_TIMEOUT);
    }

    /**
     * Creates the exception for a wait that ended before its time-out because {@code peer} was
     * given up, by another rank or by this one in an earlier call.
     *
     * @param begins whether the peer had not yet begun the call
     * @param waitedNanos how long {@code rank} waited, or {@link #NOT_KNOWN}
     */
    public static DeepEpTimeoutException givenUp(
            boolean begins, int rank, int peer, String phase, long waitedNanos) {
        String howLong = known(waitedNanos);
        return new DeepEpTimeoutException(
                "rank %s waited %sfor rank %s in %s; %s"
                        .formatted(
                                rank,
                                howLong,
                                peer,
                                phase,
                                cure(peer, begins ? START_TIMEOUT : TIMEOUT)),
                null,
                rank,
                peer,
                phase,
                waitedNanos,
                howLong,
                false,
                false);
    }

    /**
     * Creates the exception for a wait that ended early because the peer is gone.
     *
     * @param rank the rank that waited
     * @param gone the rank that it waited for, and why that rank is gone
     * @param phase what it waited for, see {@link #phase}
     * @param waitedNanos how long it waited
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
        this(
                "rank %s waited %sfor rank %s in %s, in vain: %s"
                        .formatted(rank, howLong, gone.rank(), phase, gone.reason()),
                seen,
                rank,
                gone.rank(),
                phase,
                waitedNanos,
                howLong,
                false,
                true);
    }

    private static String cure(int peer, String limit) {
        return "check that rank %s is alive and makes the same calls, or raise %s"
                .formatted(peer, limit);
    }

    /**
     * Returns an exception for the same wait that names the rank at fault. A waiting rank sees only
     * which peer did not come, but that peer may have been waiting for another rank that is gone.
     * Returns this exception if no such rank is known.
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

    /**
     * Returns an exception for the same wait, of ranks that met for a call of their buffers, which
     * the start time-out limits. Returns this exception if it tells why the peer is gone.
     *
     * @param call what the peer did not do, such as "open its buffer"
     */
    public DeepEpTimeoutException inMeeting(String call) {
        return isGone
                ? this
                : new DeepEpTimeoutException(
                        "rank %s waited %sfor rank %s to %s; %s"
                                .formatted(rank, howLong, peer, call, cure(peer, START_TIMEOUT)),
                        this,
                        rank,
                        peer,
                        phase,
                        waitedNanos,
                        howLong,
                        isAhead,
                        false);
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

    /** Whether the peer has gone on because this rank was too late, and is not at fault. */
    public boolean isPeerAhead() {
        return isAhead;
    }

    /**
     * How long the wait lasted. If a time-out ended it, this is that time-out (or start time-out),
     * and the wait was at least as long: a peer that is itself waiting gets more time. If the wait
     * ended earlier, this is the time until then. Zero if the time is not known, as on GPUs if
     * another rank had given up the peer, or the peer had gone on without this rank; the message
     * then gives no time.
     */
    public Duration waited() {
        return Duration.ofNanos(waitedNanos);
    }

    /** What was waited for, for example {@code dispatch.header}. */
    public String phase() {
        return phase;
    }
}
