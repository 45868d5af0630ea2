package io.deepep.spi;

import io.deepep.error.CapacityExceededException;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.RankMismatchException;
import io.deepep.error.RoutingException;

/**
 * What went wrong in a call; which fields a code uses, {@link FaultCode} says.
 *
 * @param at the rank that the fault is about, or that waited
 * @param waitedNanos how long it waited until the fault, or {@link
 *     DeepEpTimeoutException#NOT_KNOWN}
 */
public record Fault(
        FaultCode code,
        FaultPhase phase,
        int at,
        int peer,
        int token,
        int k,
        long expected,
        long seen,
        long waitedNanos) {
    /** A fault that ended no wait, or one of which is not known how long it was. */
    public Fault(
            FaultCode code,
            FaultPhase phase,
            int at,
            int peer,
            int token,
            int k,
            long expected,
            long seen) {
        this(code, phase, at, peer, token, k, expected, seen, DeepEpTimeoutException.NOT_KNOWN);
    }

    /** The same of a wait that lasted so long. */
    public Fault after(long nanos) {
        return new Fault(code, phase, at, peer, token, k, expected, seen, nanos);
    }

    /** A fault of a rank's routing, of which its header tells. */
    public static Fault ofRouting(FaultCode code, int rank, int token, int k, long seen) {
        return new Fault(code, FaultPhase.NONE, rank, -1, token, k, 0, seen);
    }

    /** Of more rows than {@code rank} has room for. */
    public static Fault ofRoom(FaultCode code, int rank, long room, long rows) {
        return new Fault(code, FaultPhase.NONE, rank, -1, -1, -1, room, rows);
    }

    /** Rank {@code at} waited for {@code peer}. */
    public static Fault ofWait(
            FaultCode code, FaultPhase phase, int at, int peer, long expected, long seen) {
        return new Fault(code, phase, at, peer, -1, -1, expected, seen);
    }

    /** Rank {@code peer} gave up on {@code culprit}, as it told with its code. */
    public static Fault ofAborted(
            FaultPhase phase, int at, int peer, int culprit, long epoch, long toldCode) {
        return new Fault(FaultCode.PEER_ABORTED, phase, at, peer, -1, culprit, epoch, toldCode);
    }

    /** Whether every rank gets the same failure, so that all are still in step. */
    public static boolean isAgreed(Throwable failure) {
        return failure instanceof RoutingException
                || failure instanceof CapacityExceededException
                || failure instanceof RankMismatchException;
    }
}
