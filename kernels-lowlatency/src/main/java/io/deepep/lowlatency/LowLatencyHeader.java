package io.deepep.lowlatency;

import io.deepep.LowLatencyFormat;

/**
 * What a source announces to each rank with a low-latency dispatch.
 *
 * <pre>
 *   long fields[8]          the constants below
 *   int  selections[E]      the source's selections of each expert
 * </pre>
 *
 * Selections of all experts and not just of the receiver's, so that every rank knows when an expert
 * anywhere is selected more often than it has rows.
 */
public final class LowLatencyHeader {
    /** One of the {@code STATUS_} constants. */
    public static final int STATUS = 0;

    /** First of three numbers that belong to the status: token, k, value. */
    public static final int DETAIL = 1;

    /** The {@link #formatCode}. */
    public static final int FORMAT = 4;

    /** K. */
    public static final int NUM_TOPK = 5;

    /** Rows that follow for this receiver. */
    public static final int NUM_ROWS = 6;

    /** Longs at the head of a header. */
    public static final int NUM_FIELDS = 8;

    /** Rows follow. */
    public static final int STATUS_OK = 0;

    /** A top-k index is out of range; no rows follow. */
    public static final int STATUS_TOPK_RANGE = 1;

    private LowLatencyHeader() {}

    /** A combine's top-k index is not the one that was dispatched; no rows follow. */
    public static final int STATUS_TOPK_CHANGED = 2;

    private static final long WEIGHTED = 4;

    /** What stands for a dispatch's format in a header, and for whether it has weights. */
    public static long formatCode(LowLatencyFormat format, boolean weighted) {
        return formatCode(format) | (weighted ? WEIGHTED : 0);
    }

    /** What stands for a format. */
    public static long formatCode(LowLatencyFormat format) {
        return switch (format) {
            case BF16 -> 0;
            case FP8 -> 1;
            case FP8_POWER_OF_TWO -> 2;
            case FP8_UE8M0 -> 3;
        };
    }

    /** The format that a code stands for, for messages. */
    public static String formatName(long code) {
        for (LowLatencyFormat format : LowLatencyFormat.values()) {
            if (formatCode(format) == (code & ~WEIGHTED)) {
                return format + ((code & WEIGHTED) != 0 ? " with weights" : "");
            }
        }
        return "format " + code;
    }

    /** What {@link #STATUS_TOPK_RANGE} means. */
    public static String topkRangeMessage(long token, long k, long value, int numExperts) {
        return "topkIdx["
                + token
                + "]["
                + k
                + "]="
                + value
                + " is not in [-1, numExperts="
                + numExperts
                + ")";
    }

    /** Byte offset of a field. */
    public static long fieldOffset(int field) {
        return 8L * field;
    }

    /** Byte offset of the selections of an expert. */
    public static long selectionsOffset(int expert) {
        return 8L * NUM_FIELDS + 4L * expert;
    }

    /** Bytes of a header. */
    public static long sizeBytes(int numExperts) {
        return selectionsOffset(numExperts);
    }
}
