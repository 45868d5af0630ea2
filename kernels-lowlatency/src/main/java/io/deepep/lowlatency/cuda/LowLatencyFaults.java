package io.deepep.lowlatency.cuda;

import io.deepep.cuda.FaultCode;
import io.deepep.cuda.KernelStruct;
import io.deepep.cuda.StatusStruct;
import io.deepep.error.CapacityExceededException;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.RankMismatchException;
import io.deepep.error.RoutingException;
import io.deepep.lowlatency.CallEpoch;
import io.deepep.lowlatency.LowLatencyCombineHeader;
import io.deepep.lowlatency.LowLatencyHeader;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * What a {@link FaultCode} and the fields beside it mean to the caller.
 *
 * @param combine whether the launches are a combine's, or a dispatch's
 * @param rank this rank
 * @param timeoutNanos how long its kernels wait
 * @param numExperts of the buffer
 */
record LowLatencyFaults(boolean combine, int rank, long timeoutNanos, int numExperts) {
    private static final KernelStruct STRUCT = StatusStruct.BLOCK;

    /** {@code Phase} of status.cuh. */
    private static final String[] PHASES = {
        ", having given it up in an earlier call",
        ".header",
        ".metadata",
        ".done",
        ".grid",
        ".rows",
        ".slots"
    };

    /** The exception for {@code code} and the fields beside it. */
    RuntimeException failure(int code, MemorySegment block) {
        return switch (FaultCode.of(code)) {
            case EXPERT_OUT_OF_RANGE -> routing(block);
            case SELECTION_CHANGED ->
                    new RoutingException(
                            intOf(block, "rank"),
                            LowLatencyCombineHeader.topkChangedMessage(
                                    intOf(block, "token"),
                                    intOf(block, "k"),
                                    longOf(block, "seen")));
            case HEADER_MISMATCH -> combine ? combineMismatch(block) : dispatchMismatch(block);
            case TOO_MANY_ROWS ->
                    new CapacityExceededException(
                            intOf(block, "rank"),
                            longOf(block, "seen"),
                            longOf(block, "expected"),
                            "these are the rows of expert "
                                    + intOf(block, "k")
                                    + ": select an expert once per token, or raise"
                                    + " LowLatencyLimits.maxTokens");
            case TIMEOUT -> timeout(block, PHASES[intOf(block, "phase")]);
            case OUT_OF_STEP -> timeout(block, ", which that rank has left behind");
            case OPERATION_MISMATCH ->
                    RankMismatchException.of(
                            "low-latency mode",
                            "the operation",
                            rank,
                            combine ? "combine" : "dispatch",
                            intOf(block, "peer"),
                            combine ? "dispatch" : "combine");
            default ->
                    throw new IllegalStateException(
                            operation() + ": unexpected kernel status " + FaultCode.of(code));
        };
    }

    /** Whether every rank gets such a failure, so that all are still in step. */
    static boolean isAgreed(RuntimeException failure) {
        return failure instanceof RoutingException
                || failure instanceof CapacityExceededException
                || failure instanceof RankMismatchException;
    }

    private String operation() {
        return combine ? "low-latency combine" : "low-latency dispatch";
    }

    private RoutingException routing(MemorySegment block) {
        String what =
                LowLatencyHeader.topkRangeMessage(
                        intOf(block, "token"),
                        intOf(block, "k"),
                        longOf(block, "seen"),
                        numExperts);
        String cure =
                combine
                        ? "; combine with the topkIdx that was dispatched"
                        : "; use -1 for no selection";
        return new RoutingException(intOf(block, "rank"), what + cure);
    }

    private RankMismatchException dispatchMismatch(MemorySegment block) {
        boolean format = intOf(block, "k") == LowLatencyStructs.FORMAT_WORD;
        long mine = longOf(block, "expected");
        long theirs = longOf(block, "seen");
        return RankMismatchException.of(
                operation(),
                format ? "format" : "numTopk",
                rank,
                format ? LowLatencyHeader.formatName(mine) : (Object) mine,
                intOf(block, "rank"),
                format ? LowLatencyHeader.formatName(theirs) : (Object) theirs);
    }

    private RankMismatchException combineMismatch(MemorySegment block) {
        boolean format = intOf(block, "k") == LowLatencyStructs.ROW_FORMAT_WORD;
        long mine = longOf(block, "expected");
        long theirs = longOf(block, "seen");
        return RankMismatchException.of(
                operation(),
                format ? "format" : "the dispatch that it belongs to",
                rank,
                format ? LowLatencyCombineHeader.formatName(mine) : dispatchName(mine),
                intOf(block, "rank"),
                format ? LowLatencyCombineHeader.formatName(theirs) : dispatchName(theirs));
    }

    private static String dispatchName(long epoch) {
        return "dispatch " + CallEpoch.call(epoch);
    }

    private DeepEpTimeoutException timeout(MemorySegment block, String where) {
        return new DeepEpTimeoutException(
                rank,
                intOf(block, "peer"),
                operation() + where,
                longOf(block, "expected"),
                longOf(block, "seen"),
                timeoutNanos);
    }

    private static int intOf(MemorySegment block, String field) {
        return block.get(ValueLayout.JAVA_INT, STRUCT.offset(field));
    }

    private static long longOf(MemorySegment block, String field) {
        return block.get(ValueLayout.JAVA_LONG, STRUCT.offset(field));
    }
}
