package io.deepep.lowlatency.cuda;

import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.cuda.kernel.StatusStruct;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.RankMismatchException;
import io.deepep.error.RoutingException;
import io.deepep.lowlatency.LowLatencyErrors;
import io.deepep.spi.CallTimeouts;
import io.deepep.spi.FaultCode;
import io.deepep.spi.FaultPhase;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * What a {@link FaultCode} and the fields beside it mean to the caller.
 *
 * @param errors of this kind of call
 * @param timeouts how long its kernels wait
 */
record LowLatencyFaults(LowLatencyErrors errors, CallTimeouts timeouts) {
    private static final KernelStruct STRUCT = StatusStruct.BLOCK;

    /** The exception for {@code code} and the fields beside it. */
    RuntimeException failure(int code, MemorySegment block) {
        int peer = intOf(block, "rank");
        int token = intOf(block, "token");
        int k = intOf(block, "k");
        long expected = longOf(block, "expected");
        long seen = longOf(block, "seen");
        FaultCode fault = FaultCode.of(code);
        return switch (fault) {
            case EXPERT_OUT_OF_RANGE, SELECTED_TOO_OFTEN, SELECTION_CHANGED, HANDLE_INVALID ->
                    errors.ofSelections(fault, peer, token, k, seen, expected);
            case HEADER_MISMATCH -> errors.mismatch(k, expected, peer, seen);
            case TIMEOUT -> timeout(block, phaseOf(block));
            case PEER_GONE -> givenUp(block, "." + phaseOf(block).text(), seen);
            case OUT_OF_STEP ->
                    errors.tooLate(
                            intOf(block, "peer"),
                            phaseOf(block),
                            expected,
                            seen,
                            DeepEpTimeoutException.NOT_KNOWN);
            case OPERATION_MISMATCH -> errors.otherKind(intOf(block, "peer"));
            default ->
                    throw new IllegalStateException(
                            "%s: unexpected kernel status %s".formatted(errors.operation(), fault));
        };
    }

    /** Whether every rank gets such a failure, so that all are still in step. */
    static boolean isAgreed(RuntimeException failure) {
        return failure instanceof RoutingException || failure instanceof RankMismatchException;
    }

    /** A launch that names no phase found a rank that an earlier one had lost. */
    private DeepEpTimeoutException timeout(MemorySegment block, FaultPhase phase) {
        if (phase == FaultPhase.NONE) {
            return givenUp(
                    block,
                    ", having given it up in an earlier call",
                    DeepEpTimeoutException.NOT_KNOWN);
        }
        return errors.expired(
                timeouts,
                phase.begins(),
                intOf(block, "peer"),
                phase,
                longOf(block, "expected"),
                longOf(block, "seen"));
    }

    private DeepEpTimeoutException givenUp(MemorySegment block, String where, long waitedNanos) {
        return DeepEpTimeoutException.givenUp(
                phaseOf(block).begins(),
                errors.rank(),
                intOf(block, "peer"),
                errors.operation() + where,
                waitedNanos);
    }

    private static FaultPhase phaseOf(MemorySegment block) {
        return FaultPhase.of(intOf(block, "phase"));
    }

    private static int intOf(MemorySegment block, String field) {
        return block.get(ValueLayout.JAVA_INT, STRUCT.offset(field));
    }

    private static long longOf(MemorySegment block, String field) {
        return block.get(ValueLayout.JAVA_LONG, STRUCT.offset(field));
    }
}
