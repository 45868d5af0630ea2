package io.deepep.normal.cuda;

import io.deepep.cuda.FaultCode;
import io.deepep.cuda.FaultPhase;
import io.deepep.cuda.KernelStruct;
import io.deepep.cuda.StatusStruct;
import io.deepep.error.CapacityExceededException;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.RankMismatchException;
import io.deepep.error.RoutingException;
import io.deepep.normal.HeaderWord;
import io.deepep.normal.NormalCall;
import io.deepep.normal.NormalHeader;
import io.deepep.normal.NormalHeaders;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * What a {@link FaultCode} and the fields beside it mean to the caller.
 *
 * @param operation which the launches are of
 * @param rank this rank
 * @param timeoutNanos how long its kernels wait
 * @param numExperts of the operation
 */
record FaultMessages(String operation, int rank, long timeoutNanos, int numExperts) {
    private static final KernelStruct STRUCT = StatusStruct.BLOCK;

    /** The fields of a fault. */
    private record Fault(
            String phase, int at, int peer, int token, int k, long expected, long seen) {
        static Fault of(MemorySegment block) {
            int phase = intOf(block, "phase");
            return new Fault(
                    FaultPhase.of(phase).text(),
                    intOf(block, "rank"),
                    intOf(block, "peer"),
                    intOf(block, "token"),
                    intOf(block, "k"),
                    block.get(ValueLayout.JAVA_LONG, STRUCT.offset("expected")),
                    block.get(ValueLayout.JAVA_LONG, STRUCT.offset("seen")));
        }

        private static int intOf(MemorySegment block, String field) {
            return block.get(ValueLayout.JAVA_INT, STRUCT.offset(field));
        }
    }

    /** The exception for {@code code} and the fields beside it. */
    RuntimeException failure(int code, MemorySegment block) {
        Fault fault = Fault.of(block);
        return switch (FaultCode.of(code)) {
            case EXPERT_OUT_OF_RANGE -> routing(fault, NormalHeader.STATUS_TOPK_RANGE);
            case HEADER_MISMATCH -> mismatch(fault);
            case TOO_MANY_ROWS ->
                    capacity(
                            fault,
                            "raise NormalLimits.maxRecvTokens (or numWorstTokens of its plan), or"
                                    + " use WORST_CASE");
            case TIMEOUT -> timeout(fault.peer(), operation + "." + fault.phase(), fault);
            case PEER_ABORTED -> abandoned(fault);
            case OUT_OF_STEP ->
                    timeout(fault.peer(), operation + ", which that rank has left behind", fault);
            case TOO_MANY_EXPANDED -> capacity(fault, "raise numWorstTokens of its plan");
            case ROW_OUT_OF_RANGE -> rowOutOfRange(fault);
            case GRID_NOT_RESIDENT ->
                    new IllegalStateException(
                            operation
                                    + ": the blocks of rank "
                                    + rank
                                    + " did not run together; lower Config.numSms or put fewer"
                                    + " ranks on the GPU");
            case LAYOUT_MASK -> routing(fault, NormalHeader.STATUS_LAYOUT_MASK);
            case LAYOUT_RANK_COUNT -> routing(fault, NormalHeader.STATUS_LAYOUT_RANK_COUNT);
            case LAYOUT_EXPERT_COUNT -> routing(fault, NormalHeader.STATUS_LAYOUT_EXPERT_COUNT);
            case HANDLE_INVALID ->
                    new RoutingException(
                            fault.at(),
                            operation
                                    + ": the dispatch of the handle has not run, or failed;"
                                    + " dispatch its plan again first");
            case OK, OPERATION_MISMATCH, SELECTION_CHANGED ->
                    throw new IllegalArgumentException(code + " is no fault of normal mode");
        };
    }

    /** Whether every rank gets the same failure, so that all are still in step. */
    static boolean isAgreed(RuntimeException failure) {
        return failure instanceof RoutingException
                || failure instanceof CapacityExceededException
                || failure instanceof RankMismatchException;
    }

    private RoutingException routing(Fault fault, int status) {
        return new RoutingException(
                fault.at(),
                NormalHeaders.statusMessage(
                        status, fault.token(), fault.k(), fault.seen(), numExperts));
    }

    private static RankMismatchException mismatch(Fault fault) {
        HeaderWord word = HeaderWord.of(fault.k());
        return RankMismatchException.of(
                "normal mode",
                word.text(),
                0,
                show(word, fault.expected()),
                fault.at(),
                show(word, fault.seen()));
    }

    private static Object show(HeaderWord word, long value) {
        return switch (word) {
            case OP -> NormalCall.textOf(value);
            case HANDLE_EPOCH -> "call " + Integer.toUnsignedString((int) value);
            default -> value;
        };
    }

    private static CapacityExceededException capacity(Fault fault, String cure) {
        return new CapacityExceededException(fault.at(), fault.seen(), fault.expected(), cure);
    }

    private DeepEpTimeoutException timeout(int peer, String phase, Fault fault) {
        return new DeepEpTimeoutException(
                rank, peer, phase, fault.expected(), fault.seen(), timeoutNanos);
    }

    /** A peer gave up on somebody before this rank could notice by itself. */
    private DeepEpTimeoutException abandoned(Fault fault) {
        int culprit = fault.k();
        String phase = operation + "." + fault.phase() + ", in which rank " + fault.peer();
        return culprit == rank
                ? timeout(fault.peer(), phase + " gave up waiting for rank " + rank, fault)
                : timeout(culprit, phase + " gave up waiting for it", fault);
    }

    private RankMismatchException rowOutOfRange(Fault fault) {
        return new RankMismatchException(
                operation
                        + ": rank "
                        + fault.peer()
                        + " offers "
                        + fault.expected()
                        + " rows but the handle of rank "
                        + rank
                        + " names row "
                        + fault.seen()
                        + "; combine what the handle's dispatch received");
    }
}
