package io.deepep.lowlatency;

/**
 * What is stored in symmetric memory beside rows: 64-bit words {@code epoch | value << 32}, so that
 * a word is its own flag, and the numbers that are packed into 32 bits. The kernels read and write
 * the same; {@code lowlatency_structs.cuh} has the widths from here.
 */
public final class CallWord {
    /** Of the order of a selection among its source's selections of the same expert. */
    public static final int ORDER_BITS = 15;

    /** The most local experts that the rest of a selection has room for. */
    public static final int MAX_LOCAL_EXPERTS = 1 << (Integer.SIZE - ORDER_BITS);

    /** Of a token in the tag of a dispatched row; above it, the number of its first selection. */
    public static final int TOKEN_BITS = 16;

    /** A selection of no expert of the receiver's. */
    public static final int NO_SELECTION = -1;

    private CallWord() {}

    /** A word. */
    public static long of(int epoch, int value) {
        return (epoch & 0xffffffffL) | ((long) value << Integer.SIZE);
    }

    /** The call that a word belongs to. */
    public static int epoch(long word) {
        return (int) word;
    }

    /** What it says. */
    public static int value(long word) {
        return (int) (word >>> Integer.SIZE);
    }

    /** A selection as a row's flag says it. */
    public static int selection(int localExpert, int order) {
        return localExpert << ORDER_BITS | order;
    }

    /** The local expert of a selection that is one. */
    public static int expert(int selection) {
        return selection >>> ORDER_BITS;
    }

    /** Its order among its source's selections of that expert. */
    public static int order(int selection) {
        return selection & ((1 << ORDER_BITS) - 1);
    }

    /** What the flag of a dispatched row says of the row itself. */
    public static int tag(int firstSelection, int token) {
        return firstSelection << TOKEN_BITS | token;
    }

    /** The token of a tag. */
    public static int token(int tag) {
        return tag & ((1 << TOKEN_BITS) - 1);
    }
}
