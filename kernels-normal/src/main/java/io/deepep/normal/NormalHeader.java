package io.deepep.normal;

import io.deepep.DType;
import io.deepep.spi.Layout;

/**
 * The header with which every normal-mode operation starts: each rank publishes one to all ranks,
 * and all ranks draw the same conclusions from the same set.
 *
 * <pre>
 *   long  fields[NUM_FIELDS]      the constants below; EPOCH is written last, as the flag
 *   int   tokens[R]               rows this rank sends to each rank (dispatch)
 *   int   selections[maxExperts]  selections of each expert (dispatch)
 * </pre>
 */
public final class NormalHeader {
    /** Number of the operation on this buffer, from 1: the flag that publishes the header. */
    public static final int EPOCH = 0;

    /** Bytes of the header that are in use. */
    public static final int NUM_BYTES = 1;

    /** One of {@link #OP_DISPATCH}, {@link #OP_CACHED_DISPATCH}, {@link #OP_COMBINE}. */
    public static final int OPERATION = 2;

    /** One of the {@code STATUS_} constants. */
    public static final int STATUS = 3;

    /** First of three numbers that belong to the status. */
    public static final int DETAIL = 4;

    /** E, 0 without top-k. */
    public static final int NUM_EXPERTS = 7;

    /** H. */
    public static final int HIDDEN = 8;

    /** {@link #dtypeCode} of x. */
    public static final int DTYPE = 9;

    /** K, 0 without top-k. */
    public static final int NUM_TOPK = 10;

    /** 1 if top-k weights travel along. */
    public static final int HAS_WEIGHTS = 11;

    /** T. */
    public static final int NUM_TOKENS = 12;

    /** Expert alignment; each rank's own affair, but all ranks judge whether its rows fit. */
    public static final int EXPERT_ALIGNMENT = 13;

    /** 1 if this rank groups rows by expert. */
    public static final int EXPANDED = 14;

    /** Worst-case rows of this rank, 0 for none. */
    public static final int NUM_WORST_TOKENS = 15;

    /** RDMA channels. */
    public static final int NUM_CHANNELS = 16;

    /** RDMA ring slots in use. */
    public static final int RDMA_RECV_CHUNK = 17;

    /** Epoch of the dispatch whose handle is used; 0 for a new dispatch. */
    public static final int HANDLE_EPOCH = 18;

    /** Combine: offset of the input rows in this rank's NVL buffer. */
    public static final int X_OFFSET = 19;

    /** Combine: bytes from one input row to the next. */
    public static final int X_ROW_BYTES = 20;

    /** Longs at the head of a header. */
    public static final int NUM_FIELDS = 24;

    /** A dispatch with new routing. */
    public static final int OP_DISPATCH = 1;

    /** A dispatch with a handle's routing. */
    public static final int OP_CACHED_DISPATCH = 2;

    /** A combine. */
    public static final int OP_COMBINE = 3;

    /** Nothing to complain about. */
    public static final int STATUS_OK = 0;

    /** A top-k index is out of range: token, k, value. */
    public static final int STATUS_TOPK_RANGE = 1;

    /** {@code numTokensPerRank} contradicts {@code isTokenInRank}: rank, given, counted. */
    public static final int STATUS_LAYOUT_RANK_COUNT = 2;

    /** {@code isTokenInRank} contradicts the top-k indices: token, rank, given. */
    public static final int STATUS_LAYOUT_MASK = 3;

    /** {@code numTokensPerExpert} contradicts the top-k indices: expert, given, counted. */
    public static final int STATUS_LAYOUT_EXPERT_COUNT = 4;

    private NormalHeader() {}

    /** Byte offset of a field. */
    public static long fieldOffset(int field) {
        return 8L * field;
    }

    /** Byte offset of the number of tokens to {@code rank}. */
    public static long tokensOffset(int rank) {
        return 8L * NUM_FIELDS + 4L * rank;
    }

    /** Byte offset of the number of selections of {@code expert} in a group of {@code numRanks}. */
    public static long selectionsOffset(int numRanks, int expert) {
        return tokensOffset(numRanks) + 4L * expert;
    }

    /** Bytes of a header's slot. */
    public static long slotBytes(int numRanks, int maxExperts) {
        return Layout.alignToLine(selectionsOffset(numRanks, maxExperts));
    }

    /** How {@link #DTYPE} tells a type of x. */
    public static long dtypeCode(DType dtype) {
        return switch (dtype) {
            case BF16 -> 1;
            case FP8_E4M3 -> 2;
            case F32, I32, I64, BOOL ->
                    throw new IllegalArgumentException(
                            dtype + " rows do not travel; use BF16 or FP8_E4M3");
        };
    }

    /** The name of a {@link #dtypeCode} in messages. */
    static String dtypeName(long code) {
        return code == dtypeCode(DType.BF16) ? DType.BF16.name() : DType.FP8_E4M3.name();
    }

    /** The name of an operation in messages. */
    static String operationName(long operation) {
        return switch ((int) operation) {
            case OP_DISPATCH -> "dispatch";
            case OP_CACHED_DISPATCH -> "cached dispatch";
            case OP_COMBINE -> "combine";
            default -> "operation " + operation;
        };
    }
}
