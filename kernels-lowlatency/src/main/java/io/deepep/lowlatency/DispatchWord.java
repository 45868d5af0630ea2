package io.deepep.lowlatency;

import io.deepep.spi.KernelEnum;
import io.deepep.spi.Word;

/**
 * The words at the head of a dispatch's header, which a source sends to every rank. After them come
 * the source's selections of each of the receiver's experts, filled up to an even number. Each word
 * is {@code epoch | value << 32}, see {@link Word}.
 */
public enum DispatchWord implements KernelEnum {
    /** A {@link io.deepep.spi.FaultCode}, to which the words up to the value belong. */
    STATUS("kOk or a fault of its selections, to which the words up to kStatusValueHigh belong"),
    /** The token of the selection that is out of range, or 0. */
    STATUS_TOKEN(""),
    /** Its place among the token's selections; or the expert that is selected too often. */
    STATUS_K(""),
    /** What the selection names, or how often the expert is selected: lower half. */
    STATUS_VALUE_LOW(""),
    /** The upper half. */
    STATUS_VALUE_HIGH(""),
    /** See {@link LowLatencyFormats#dispatchCode}. */
    FORMAT("how rows travel: row_format"),
    /** K. */
    TOPK(""),
    /** Rows that follow for the receiver. */
    NUM_ROWS("rows that follow for the receiver"),
    /** Selections that these stand for. */
    NUM_SELECTIONS("of its experts in them"),
    /** Tokens of the source: what is combined for few is sent in packs on GPUs of one node. */
    NUM_TOKENS("tokens of the source, whoever receives them");

    /** An even number. */
    public static final int COUNT = values().length;

    private final String comment;

    DispatchWord(String comment) {
        this.comment = comment;
    }

    @Override
    public String comment() {
        return comment;
    }
}
