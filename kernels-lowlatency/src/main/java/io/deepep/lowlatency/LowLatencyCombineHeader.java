package io.deepep.lowlatency;

import io.deepep.LowLatencyCombineRequest;

/**
 * What a rank announces to each token owner with a low-latency combine, so that ranks which combine
 * different things learn it instead of summing each other's leftovers. Longs at the byte offsets
 * below.
 */
public final class LowLatencyCombineHeader {
    /** Offset of the epoch of the dispatch whose tokens come home. */
    public static final long DISPATCH_EPOCH = 0;

    /** Offset of the {@link #formatCode}. */
    public static final long FORMAT = 8;

    /**
     * Offset of a 1 if the rank received the owner's tokens in that dispatch, or a 0 if it had
     * masked the owner: then no rows come and the owner counts them as absent.
     */
    public static final long HAS_ROWS = 16;

    /**
     * Offset of {@link LowLatencyHeader#STATUS_OK}, or another of its constants, with which no rows
     * come.
     */
    public static final long STATUS = 24;

    /** Offset of three numbers that belong to the status: token, k, value. */
    public static final long DETAIL = 32;

    /** Bytes of a header, padded. */
    public static final long SIZE_BYTES = 64;

    private static final long LOG_FMT = 1;
    private static final long PRE_REDUCED = 2;

    private LowLatencyCombineHeader() {}

    /** What travels: BF16 or {@link LogFmt10}, of each selection or of each rank's sum. */
    public static long formatCode(LowLatencyCombineRequest request) {
        return (request.logFmt() ? LOG_FMT : 0) | (request.isPreReduced() ? PRE_REDUCED : 0);
    }

    /** What a {@link #FORMAT} is called in messages. */
    public static String formatName(long format) {
        return ((format & PRE_REDUCED) != 0 ? "pre-reduced " : "")
                + ((format & LOG_FMT) != 0 ? "LogFMT" : "BF16");
    }

    /** What {@link LowLatencyHeader#STATUS_TOPK_CHANGED} means. */
    public static String topkChangedMessage(long token, long k, long value) {
        return "topkIdx["
                + token
                + "]["
                + k
                + "]="
                + value
                + " is not what was dispatched; combine with the topkIdx of the dispatch, unchanged";
    }
}
