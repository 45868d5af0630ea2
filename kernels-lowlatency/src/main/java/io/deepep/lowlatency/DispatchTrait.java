package io.deepep.lowlatency;

import io.deepep.spi.KernelEnum;

/** What a source says of its dispatch in {@link DispatchWord#TRAITS}: any of these. */
public enum DispatchTrait implements KernelEnum {
    /** It has at most {@link LowLatencyLayout#PACKED_TOKENS} tokens. */
    FEW_TOKENS("at most kPackedTokens: GPUs of one node send what is combined in packs");

    private final String comment;

    DispatchTrait(String comment) {
        this.comment = comment;
    }

    /** The word of a source. */
    public static int word(int numTokens) {
        return numTokens <= LowLatencyLayout.PACKED_TOKENS ? FEW_TOKENS.value() : 0;
    }

    @Override
    public int value() {
        return 1 << ordinal();
    }

    @Override
    public String comment() {
        return comment;
    }
}
