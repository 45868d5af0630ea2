package io.deepep.normal.cuda;

import io.deepep.cuda.PinnedMemory;
import io.deepep.error.CapacityExceededException;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.RankMismatchException;
import io.deepep.error.RoutingException;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/**
 * What a launch tells the host: {@code StatusBlock} of {@code deepep/status.cuh}, in mapped host
 * memory, and what its codes mean in Java.
 */
final class StatusBlock {
    static final long BYTES = 64;

    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
    private static final String[] HEADER_WORDS = {
        "the operation",
        "numExperts",
        "hidden",
        "bytes of a row",
        "numTopk",
        "number of scales",
        "topkWeights given"
    };
    private static final String[] OPERATIONS = {"none", "dispatch", "cached dispatch", "combine"};
    private static final String[] PHASES = {"start", "header", "metadata", "done", "grid"};

    private final PinnedMemory memory;
    private final long offset;
    private final int rank;
    private final long timeoutNanos;

    /** The block at {@code offset} of {@code memory}. */
    StatusBlock(PinnedMemory memory, long offset, int rank, long timeoutNanos) {
        this.memory = memory;
        this.offset = offset;
        this.rank = rank;
        this.timeoutNanos = timeoutNanos;
    }

    long deviceAddress() {
        return memory.deviceAddress() + offset;
    }

    /** Forgets the launch before; only while none is in flight. */
    void clear() {
        LONG.setRelease(memory.segment(), offset, 0L);
        LONG.setRelease(memory.segment(), offset + 8, 0L);
    }

    /** Whether counts are known; pairs with the release in report_counts. */
    boolean isReady() {
        return (long) LONG.getAcquire(memory.segment(), offset) != 0;
    }

    /** Whether the launch has said its last word; pairs with the release in finish_call. */
    boolean isDone() {
        return (long) LONG.getAcquire(memory.segment(), offset + 8) != 0;
    }

    int numRows() {
        return getInt(16);
    }

    int numExpandedRows() {
        return getInt(20);
    }

    private int getInt(long at) {
        return memory.segment().get(ValueLayout.JAVA_INT, offset + at);
    }

    private long getLong(long at) {
        return memory.segment().get(ValueLayout.JAVA_LONG, offset + at);
    }

    /** Throws what went wrong in the finished launch of {@code operation}, if anything did. */
    void check(String operation, int numExperts) {
        int code = (int) ((long) LONG.getAcquire(memory.segment(), offset + 8) >>> 32);
        if (code != 0) {
            throw failure(code, operation, numExperts);
        }
    }

    private RuntimeException failure(int code, String operation, int numExperts) {
        int at = getInt(32);
        int peer = getInt(36);
        int token = getInt(40);
        int k = getInt(44);
        long expected = getLong(48);
        long seen = getLong(56);
        String phase = operation + "." + PHASES[Math.clamp(getInt(28), 0, PHASES.length - 1)];
        return switch (code) {
            case 1 ->
                    new RoutingException(
                            at,
                            "topkIdx["
                                    + token
                                    + "]["
                                    + k
                                    + "]="
                                    + seen
                                    + " is not in [-1, numExperts="
                                    + numExperts
                                    + "); use -1 for no selection");
            case 2 ->
                    RankMismatchException.of(
                            "normal mode",
                            HEADER_WORDS[Math.clamp(k, 0, HEADER_WORDS.length - 1)],
                            0,
                            show(k, expected),
                            at,
                            show(k, seen));
            case 3 ->
                    new CapacityExceededException(
                            at,
                            seen,
                            expected,
                            "raise NormalLimits.maxRecvTokens (or numWorstTokens of its request), or use WORST_CASE");
            case 4 -> new DeepEpTimeoutException(rank, peer, phase, expected, seen, timeoutNanos);
            case 5 ->
                    new DeepEpTimeoutException(
                            rank,
                            peer,
                            operation + ", which that rank gave up",
                            expected,
                            seen,
                            timeoutNanos);
            case 6 ->
                    new DeepEpTimeoutException(
                            rank,
                            peer,
                            operation + ", which that rank has left behind",
                            expected,
                            seen,
                            timeoutNanos);
            case 7 ->
                    new CapacityExceededException(
                            rank, seen, expected, "raise numWorstTokens of its request");
            case 8 ->
                    new RankMismatchException(
                            operation
                                    + ": rank "
                                    + peer
                                    + " offers "
                                    + expected
                                    + " rows but the handle of rank "
                                    + rank
                                    + " names row "
                                    + seen
                                    + "; combine what the handle's dispatch received");
            case 9 ->
                    new IllegalStateException(
                            operation
                                    + ": the blocks of rank "
                                    + rank
                                    + " did not run together; lower Config.numSms or put fewer ranks on the GPU");
            default ->
                    new IllegalStateException(
                            operation
                                    + ": kernel status "
                                    + code
                                    + " ("
                                    + expected
                                    + ", "
                                    + seen
                                    + ")");
        };
    }

    private static Object show(int word, long value) {
        return word == 0 ? OPERATIONS[Math.clamp(value, 0, OPERATIONS.length - 1)] : (Object) value;
    }
}
