package io.deepep.lowlatency.cuda;

import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.cuda.kernel.StatusStruct;
import io.deepep.error.CapacityExceededException;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.RankMismatchException;
import io.deepep.error.RoutingException;
import io.deepep.lowlatency.CombineWord;
import io.deepep.lowlatency.DispatchWord;
import io.deepep.lowlatency.Kind;
import io.deepep.lowlatency.LowLatencyErrors;
import io.deepep.spi.FaultCode;
import io.deepep.spi.FaultPhase;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * What a {@link FaultCode} and the fields beside it mean to the caller.
 *
 * @param errors of this kind of call
 * @param timeoutNanos how long its kernels wait
 */
record LowLatencyFaults(LowLatencyErrors errors, long timeoutNanos) {
    private static final KernelStruct STRUCT = StatusStruct.BLOCK;

    /** The exception for {@code code} and the fields beside it. */
    RuntimeException failure(int code, MemorySegment block) {
        int peer = intOf(block, "rank");
        int token = intOf(block, "token");
        int k = intOf(block, "k");
        long expected = longOf(block, "expected");
        long seen = longOf(block, "seen");
        return switch (FaultCode.of(code)) {
            case EXPERT_OUT_OF_RANGE -> errors.expertOutOfRange(peer, token, k, seen);
            case SELECTION_CHANGED -> errors.selectionChanged(peer, token, k, seen);
            case HEADER_MISMATCH -> mismatch(peer, k, expected, seen);
            case TOO_MANY_ROWS -> errors.tooManyRows(peer, seen, expected, k);
            case TIMEOUT -> timeout(block, where(FaultPhase.of(intOf(block, "phase"))));
            case PEER_GONE -> gone(block, where(FaultPhase.of(intOf(block, "phase"))));
            case OUT_OF_STEP -> timeout(block, ", which that rank has left behind");
            case OPERATION_MISMATCH -> errors.otherKind(intOf(block, "peer"));
            default ->
                    throw new IllegalStateException(
                            errors.operation()
                                    + ": unexpected kernel status "
                                    + FaultCode.of(code));
        };
    }

    private RankMismatchException mismatch(int peer, int word, long mine, long theirs) {
        if (errors.kind() == Kind.DISPATCH) {
            return word == DispatchWord.FORMAT.value()
                    ? errors.dispatchFormat((int) mine, peer, (int) theirs)
                    : errors.numTopk(mine, peer, theirs);
        }
        return word == CombineWord.ROW_FORMAT.value()
                ? errors.combineFormat((int) mine, peer, (int) theirs)
                : errors.otherDispatch(mine, peer, theirs);
    }

    /** A launch that names no phase found a rank that an earlier one had lost. */
    private static String where(FaultPhase phase) {
        return phase == FaultPhase.NONE
                ? ", having given it up in an earlier call"
                : "." + phase.text();
    }

    /** Whether every rank gets such a failure, so that all are still in step. */
    static boolean isAgreed(RuntimeException failure) {
        return failure instanceof RoutingException
                || failure instanceof CapacityExceededException
                || failure instanceof RankMismatchException;
    }

    private DeepEpTimeoutException timeout(MemorySegment block, String where) {
        return new DeepEpTimeoutException(
                errors.rank(),
                intOf(block, "peer"),
                errors.operation() + where,
                longOf(block, "expected"),
                longOf(block, "seen"),
                timeoutNanos);
    }

    private DeepEpTimeoutException gone(MemorySegment block, String where) {
        return new DeepEpTimeoutException(
                errors.rank(),
                intOf(block, "peer"),
                errors.operation() + where,
                longOf(block, "expected"),
                0,
                longOf(block, "seen"));
    }

    private static int intOf(MemorySegment block, String field) {
        return block.get(ValueLayout.JAVA_INT, STRUCT.offset(field));
    }

    private static long longOf(MemorySegment block, String field) {
        return block.get(ValueLayout.JAVA_LONG, STRUCT.offset(field));
    }
}
