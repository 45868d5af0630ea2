package io.deepep.error;

import java.io.Serializable;
import java.time.Duration;
import java.util.List;

/**
 * A rank waited for a peer that did not come within the time-out, or that is known to be gone. The
 * buffer that waited refuses further calls, unless it {@linkplain
 * io.deepep.Buffer.Builder#maskTimedOutRanks masks timed-out ranks}; other buffers are not
 * affected.
 */
public final class DeepEpTimeoutException extends DeepEpException {
    /** Value that stands for an unknown waiting time. */
    public static final long NOT_KNOWN = -1;

    private static final String TIMEOUT = "timeout";
    private static final String START_TIMEOUT = "startTimeout";
    private static final long serialVersionUID = 1L;

    private final PeerWait wait;
    private final Reason reason;

    /** Why the peer did not come. */
    private enum Reason {
        LATE,
        AHEAD,
        /** The message says why. */
        GONE
    }

    /**
     * Who waited for whom.
     *
     * @param nanos how long, or {@link #NOT_KNOWN}
     * @param expired whether that is a time-out, and the wait was at least as long
     */
    private record PeerWait(int rank, int peer, String phase, long nanos, boolean expired)
            implements Serializable {
        PeerWait withPeer(int other) {
            return new PeerWait(rank, other, phase, nanos, expired);
        }

        /** Such as {@code rank 3 waited more than 30.0 s for rank 5}. */
        @Override
        public String toString() {
            return "rank %s waited %s%sfor rank %s"
                    .formatted(rank, expired ? "more than " : "", time(), peer);
        }

        /** Rounded down: the wait was no shorter. */
        private String time() {
            long millis = nanos / 1_000_000;
            if (millis < 1000) {
                return nanos < 0 ? "" : millis + " ms ";
            }
            return "%s.%s s ".formatted(millis / 1000, millis / 100 % 10);
        }
    }

    private DeepEpTimeoutException(String message, Throwable cause, PeerWait wait, Reason reason) {
        super(message, cause);
        this.wait = wait;
        this.reason = reason;
    }

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
        this(new PeerWait(rank, peer, phase, timeoutNanos, true), expected, observed, TIMEOUT);
    }

    private DeepEpTimeoutException(PeerWait wait, long expected, long observed, String limit) {
        this(
                "%s in %s: expected=%s observed=%s; %s"
                        .formatted(wait, wait.phase, expected, observed, cure(wait.peer, limit)),
                null,
                wait,
                Reason.LATE);
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
        PeerWait wait = new PeerWait(rank, peer, phase, waitedNanos, false);
        return new DeepEpTimeoutException(message, null, wait, Reason.AHEAD);
    }

    /**
     * Creates the exception for a wait for {@code peer} to begin the call that the start time-out
     * ended.
     */
    public static DeepEpTimeoutException notBegun(
            int rank, int peer, String phase, long expected, long observed, long startNanos) {
        return new DeepEpTimeoutException(
                new PeerWait(rank, peer, phase, startNanos, true),
                expected,
                observed,
                START_TIMEOUT);
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
        PeerWait wait = new PeerWait(rank, peer, phase, waitedNanos, false);
        String limit = begins ? START_TIMEOUT : TIMEOUT;
        String message = "%s in %s; %s".formatted(wait, phase, cure(peer, limit));
        return new DeepEpTimeoutException(message, null, wait, Reason.LATE);
    }

    /**
     * Creates the exception for a wait that ended early because {@code peer} left the call: it was
     * too late, or failed for a reason that has nothing to do with other ranks.
     *
     * @param waitedNanos how long {@code rank} waited, or {@link #NOT_KNOWN}
     */
    public static DeepEpTimeoutException left(int rank, int peer, String phase, long waitedNanos) {
        PeerWait wait = new PeerWait(rank, peer, phase, waitedNanos, false);
        String message =
                "%s in %s; rank %s left the call with an error of its own, which says what to do"
                        .formatted(wait, phase, peer);
        return new DeepEpTimeoutException(message, null, wait, Reason.GONE);
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
        this(gone, new PeerWait(rank, gone.rank(), phase, waitedNanos, false), null);
    }

    private DeepEpTimeoutException(Departure gone, PeerWait wait, Throwable seen) {
        this("%s; %s in %s".formatted(gone.reason(), wait, wait.phase), seen, wait, Reason.GONE);
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
        return Departure.culprit(departures, wait.rank, wait.peer)
                .map(gone -> new DeepEpTimeoutException(gone, wait.withPeer(gone.rank()), this))
                .orElse(this);
    }

    /**
     * Returns an exception for the same wait, of ranks that met for a call of their buffers, which
     * the start time-out limits. Returns this exception if it tells why the peer is gone.
     *
     * @param call what the peer did not do, such as "open its buffer"
     */
    public DeepEpTimeoutException inMeeting(String call) {
        if (reason == Reason.GONE) {
            return this;
        }
        String message = "%s to %s; %s".formatted(wait, call, cure(wait.peer, START_TIMEOUT));
        return new DeepEpTimeoutException(message, this, wait, reason);
    }

    /** The rank that waited. */
    public int rank() {
        return wait.rank;
    }

    /** The rank that did not come. */
    public int peer() {
        return wait.peer;
    }

    /** Whether the peer has gone on because this rank was too late, and is not at fault. */
    public boolean isPeerAhead() {
        return reason == Reason.AHEAD;
    }

    /**
     * How long the wait lasted. If a time-out ended it, this is that time-out (or start time-out),
     * and the wait was at least as long: a peer that is itself waiting gets more time. If the wait
     * ended earlier, this is the time until then. Zero if the time is not known, as on GPUs if
     * another rank had given up the peer, or the peer had gone on without this rank; the message
     * then gives no time.
     */
    public Duration waited() {
        return Duration.ofNanos(Math.max(0, wait.nanos));
    }

    /** What was waited for, for example {@code dispatch.header}. */
    public String phase() {
        return wait.phase;
    }
}
