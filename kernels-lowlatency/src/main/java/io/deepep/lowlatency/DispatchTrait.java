package io.deepep.lowlatency;

import io.deepep.spi.KernelEnum;

/** What a source says of its dispatch in {@link DispatchWord#TRAITS}: any of these. */
public enum DispatchTrait implements KernelEnum {
    /** It has more selections of some expert, of any rank, than it may have tokens. */
    CROWDED(1, "the source has more selections of an expert, of any rank, than it may have tokens"),
    /** It has at most {@link LowLatencyLayout#PACKED_TOKENS} tokens. */
    FEW_TOKENS(2, "at most kPackedTokens: GPUs of one node send what is combined in packs");

    private final int value;
    private final String comment;

    DispatchTrait(int value, String comment) {
        this.value = value;
        this.comment = comment;
    }

    /** Whether a word has it. */
    public boolean isIn(int word) {
        return (word & value) != 0;
    }

    /** The word of a source. */
    public static int word(boolean crowded, int numTokens) {
        return (crowded ? CROWDED.value : 0)
                | (numTokens <= LowLatencyLayout.PACKED_TOKENS ? FEW_TOKENS.value : 0);
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String comment() {
        return comment;
    }
}
