package io.deepep.lowlatency;

import io.deepep.spi.KernelEnum;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * What the flag of a dispatched row says of each selection of its token: four words, which the
 * kernels store as one. On the host, a header orders them.
 */
public enum DispatchFlagWord implements KernelEnum {
    /** The call that the row belongs to. */
    EPOCH("of the call"),
    /** See {@link #selection}. */
    SELECTION("local expert << kOrderBits | order, or ~0 if it is another rank's"),
    /** Its weight, as the bits of an F32; 0 if the dispatch has none. */
    WEIGHT("f32, or 0"),
    /** See {@link #tag}; of the row. */
    TAG("number of the row's first selection << kTokenBits | token");

    /** Bytes of a selection's words. */
    public static final int BYTES = values().length * Integer.BYTES;

    /** Of the order of a selection among its source's selections of the same expert. */
    public static final int ORDER_BITS = 15;

    /** The most local experts that the rest of a selection has room for. */
    public static final int MAX_LOCAL_EXPERTS = 1 << (Integer.SIZE - ORDER_BITS);

    /** Of a token in the tag of a row; above it, the number of its first selection. */
    public static final int TOKEN_BITS = 16;

    /** A selection of no expert of the receiver's. */
    public static final int NO_SELECTION = -1;

    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;

    private final String comment;

    DispatchFlagWord(String comment) {
        this.comment = comment;
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

    /** What the flag says of the row itself. */
    public static int tag(int firstSelection, int token) {
        return firstSelection << TOKEN_BITS | token;
    }

    /** The token of a tag. */
    public static int token(int tag) {
        return tag & ((1 << TOKEN_BITS) - 1);
    }

    /** The word of selection k in the flag that begins at {@code flag}. */
    public int get(MemorySegment memory, long flag, int k) {
        return memory.get(INT, flag + offset(k));
    }

    /** Writes it. */
    public void set(MemorySegment memory, long flag, int k, int value) {
        memory.set(INT, flag + offset(k), value);
    }

    private long offset(int k) {
        return (long) k * BYTES + (long) ordinal() * Integer.BYTES;
    }

    @Override
    public String comment() {
        return comment;
    }
}
