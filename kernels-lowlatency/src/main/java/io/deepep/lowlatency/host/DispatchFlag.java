package io.deepep.lowlatency.host;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The flag of a dispatched row: words of 16 bytes, one for each selection of its token. What the
 * kernels store as words that arrive together, a header orders here.
 */
final class DispatchFlag {
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;

    private static final int SELECTION = Integer.BYTES;
    private static final int WEIGHT = 2 * Integer.BYTES;
    private static final int TAG = 3 * Integer.BYTES;
    private static final int WORD_BYTES = 4 * Integer.BYTES;

    private DispatchFlag() {}

    /** Writes the word of selection k. The weight is given as its bits. */
    static void set(
            MemorySegment memory, long flag, int k, int epoch, int selection, int weight, int tag) {
        long word = flag + (long) k * WORD_BYTES;
        memory.set(INT, word, epoch);
        memory.set(INT, word + SELECTION, selection);
        memory.set(INT, word + WEIGHT, weight);
        memory.set(INT, word + TAG, tag);
    }

    static int epoch(MemorySegment memory, long flag) {
        return memory.get(INT, flag);
    }

    static int tag(MemorySegment memory, long flag) {
        return memory.get(INT, flag + TAG);
    }

    static int selection(MemorySegment memory, long flag, int k) {
        return memory.get(INT, flag + (long) k * WORD_BYTES + SELECTION);
    }

    static float weight(MemorySegment memory, long flag, int k) {
        return memory.get(FLOAT, flag + (long) k * WORD_BYTES + WEIGHT);
    }
}
