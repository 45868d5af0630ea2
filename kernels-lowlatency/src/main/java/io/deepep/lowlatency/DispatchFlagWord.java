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
    /** See {@link CallWord#selection}. */
    SELECTION("local expert << kOrderBits | order, or ~0 if it is another rank's"),
    /** Its weight, as the bits of an F32; 0 if the dispatch has none. */
    WEIGHT("f32, or 0"),
    /** See {@link CallWord#tag}; of the row. */
    TAG("number of the row's first selection << kTokenBits | token");

    /** Bytes of a selection's words. */
    public static final int BYTES = values().length * Integer.BYTES;

    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;

    private final String comment;

    DispatchFlagWord(String comment) {
        this.comment = comment;
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
