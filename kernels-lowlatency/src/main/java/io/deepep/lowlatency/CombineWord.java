package io.deepep.lowlatency;

import io.deepep.spi.KernelEnum;
import io.deepep.spi.Word;

/**
 * The words of a combine's header, which every rank sends to every owner of tokens, so that ranks
 * which combine different things learn it instead of summing what does not belong together. Each is
 * {@code epoch | value << 32}, see {@link Word}.
 */
public enum CombineWord implements KernelEnum {
    /** Epoch of the dispatch whose tokens are combined. */
    DISPATCH_EPOCH("of the dispatch whose tokens are combined"),
    /** See {@link LowLatencyFormats#combineCode}. */
    ROW_FORMAT("how rows travel, from each selection or each rank: row_format"),
    /** 1 or 0: then no rows come, and the owner counts them as absent. */
    HAS_ROWS("0: the sender did not receive the owner's tokens in that dispatch"),
    /** A {@link io.deepep.spi.FaultCode}, to which the words after it belong. */
    COMBINE_STATUS("kOk, kExpertOutOfRange, kSelectionChanged or kHandleInvalid"),
    /** The token of the selection that is at fault. */
    COMBINE_TOKEN(""),
    /** Its place among the token's selections. */
    COMBINE_K(""),
    /** What it names, lower half. */
    COMBINE_VALUE_LOW(""),
    /** Its upper half. */
    COMBINE_VALUE_HIGH("");

    /** An even number. */
    public static final int COUNT = values().length;

    private final String comment;

    CombineWord(String comment) {
        this.comment = comment;
    }

    @Override
    public String comment() {
        return comment;
    }
}
