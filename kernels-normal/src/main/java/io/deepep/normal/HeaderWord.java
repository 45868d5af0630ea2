package io.deepep.normal;

import io.deepep.EpTopology;
import io.deepep.spi.KernelEnum;

/**
 * The words of the header with which every call of normal mode opens: each rank sends one to every
 * rank, and all ranks draw the same conclusions from the same set. In the NVL buffer a word is
 * stored as {@code epoch | value << 32}, so that it needs no flag; across the network headers are
 * plain {@code i32} with a flag behind them.
 *
 * <p>On one node of at most {@link #NARROW_RANKS} ranks, {@link #HEADER_COUNTS} onwards hold the
 * sender's rows for each rank, and the selections of the receiver's experts follow at {@link
 * #HEADER_WORDS}. In larger groups the rows for each rank of all nodes begin at {@link
 * #HEADER_WORDS}, and the selections follow those.
 */
public enum HeaderWord implements KernelEnum {
    /**
     * The ranks that are left out. The first word: who learns that masks differ knows why others
     * make another call.
     */
    MASKED("masked ranks", "bit r for rank r, or a hash: see Masks"),
    /** A {@link NormalCall}. */
    OP("the operation", ""),
    /** E, 0 without top-k. */
    NUM_EXPERTS("numExperts", ""),
    /** H. */
    HIDDEN("hidden", ""),
    /** Bytes from a row to the next. */
    ROW_BYTES("the type of x", ""),
    /** K, 0 without top-k. */
    TOPK("numTopk", ""),
    /** Scales of a row. */
    NUM_SCALES("the type of x", ""),
    /** 1 if top-k weights travel along. */
    HAS_WEIGHTS("topkWeights", ""),
    /** The dispatch whose routing is used, 0 for a new one. */
    HANDLE_EPOCH(
            "the dispatch of the handle",
            "cached dispatch and combine: the call whose routing is used"),
    /** How the work is divided. */
    NUM_BLOCKS("numSms", "several nodes"),
    /** Slots of a ring between nodes. */
    NUM_SLOTS(
            "slots of a ring (rdmaRecvChunk)",
            "several nodes: of a ring; from kRingsShift on, rings of a channel"),
    /** What is wrong with the rank's routing, a {@link io.deepep.spi.FaultCode}. */
    STATUS("", "the words before this one must agree on all ranks"),
    /** The token that the status is about. */
    STATUS_TOKEN("", ""),
    /** The selection that the status is about. */
    STATUS_K("", ""),
    /** The value that the status is about, lower half. */
    STATUS_VALUE_LOW("", ""),
    /** Its upper half. */
    STATUS_VALUE_HIGH("", ""),
    /** Rows. */
    ROW_LIMIT("", "dispatch: rows this rank can take. combine: rows this rank offers"),
    /** Where the rows of a combine lie, lower half. */
    X_LOW("", "combine: offset in the heap, or address where kXAbsolute is set"),
    /** Its upper half. */
    X_HIGH("", ""),
    /** From one of these rows to the next. */
    X_STRIDE("", "bytes"),
    /** Whether these rows are given by their address. */
    X_ABSOLUTE("", ""),
    /** Where their weights lie, lower half. */
    WEIGHTS_LOW("", ""),
    /** Its upper half. */
    WEIGHTS_HIGH("", ""),
    /** From the weights of one row to those of the next. */
    WEIGHTS_STRIDE("", "floats"),
    /** Tokens of this rank. */
    NUM_TOKENS("", "several nodes, where counts follow the words"),
    /** Whether the expanded layout of this rank can be too large. */
    EXPANDED_LIMITED("", "several nodes: this rank takes a limited number of expanded rows");

    /**
     * Ranks of a node that kernels have lanes and words for as they are; larger ones have kernels
     * of their own.
     */
    public static final int NARROW_RANKS = 8;

    /** Words before the selections of experts; lanes of a warp. */
    public static final int HEADER_WORDS = 32;

    /** One node: the first word of the rows for each rank; combine: where they may be put. */
    public static final int HEADER_COUNTS = NUM_TOKENS.ordinal();

    /** The first words, which must agree on all ranks. */
    public static final int NUM_COMPARED = STATUS.ordinal();

    /** Combine, at {@link #HEADER_COUNTS}: all rows of this rank lie where peers read them. */
    public static final int ALL_IN_PLACE = -1;

    /** Combine, at {@link #HEADER_COUNTS}: this rank brings its rows into its own region. */
    public static final int NO_ROOM = -2;

    private final String text;
    private final String comment;

    HeaderWord(String text, String comment) {
        this.text = text;
        this.comment = comment;
    }

    /** The first word of a dispatch's rows for each rank. */
    public static int firstCount(EpTopology topology) {
        return isNarrow(topology) ? HEADER_COUNTS : HEADER_WORDS;
    }

    /** The first word of a dispatch's selections of the receiver's experts. */
    public static int firstExpert(EpTopology topology) {
        return isNarrow(topology) ? HEADER_WORDS : HEADER_WORDS + topology.numRanks();
    }

    /** Whether the group is one node whose counts fit among the words. */
    private static boolean isNarrow(EpTopology topology) {
        return topology.numRanks() <= NARROW_RANKS && !topology.isInternode();
    }

    /** The word with that index. */
    public static HeaderWord of(int idx) {
        return values()[Math.clamp(idx, 0, values().length - 1)];
    }

    /** What it is called in messages, if ranks compare it. */
    public String text() {
        return text;
    }

    @Override
    public String comment() {
        return comment;
    }
}
