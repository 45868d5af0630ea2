package io.deepep.lowlatency;

/**
 * What a rank announces to each token owner with a low-latency combine, so that ranks which combine
 * different things learn it instead of summing each other's leftovers. Longs at the byte offsets
 * below.
 */
public final class LowLatencyCombineHeader {
    /** Offset of the epoch of the dispatch whose tokens come home. */
    public static final long DISPATCH_EPOCH = 0;

    /** Offset of {@link #ROWS_BF16} or {@link #ROWS_LOG_FMT}. */
    public static final long FORMAT = 8;

    /**
     * Offset of a 1 if the rank received the owner's tokens in that dispatch, or a 0 if it had
     * masked the owner: then no rows come and the owner counts them as absent.
     */
    public static final long HAS_ROWS = 16;

    /**
     * Offset of {@link LowLatencyHeader#STATUS_OK} or {@link LowLatencyHeader#STATUS_TOPK_RANGE},
     * with which no rows come.
     */
    public static final long STATUS = 24;

    /** Offset of three numbers that belong to the status: token, k, value. */
    public static final long DETAIL = 32;

    /** Bytes of a header, padded. */
    public static final long SIZE_BYTES = 64;

    /** Rows are BF16. */
    public static final long ROWS_BF16 = 0;

    /** Rows are {@link LogFmt10}. */
    public static final long ROWS_LOG_FMT = 1;

    private LowLatencyCombineHeader() {}

    /** What a {@link #FORMAT} is called in messages. */
    public static String formatName(long format) {
        return format == ROWS_BF16 ? "BF16" : "LogFMT";
    }
}
