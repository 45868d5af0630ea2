package io.deepep.normal.host;

import io.deepep.host.RowMath;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The sum of a few BF16 rows, in the order in which they were added: fp32 accumulation from zero,
 * one rounding at the end. Works through pieces of the rows that stay in the first-level cache.
 */
final class RowSum {
    private static final int PIECE = 2048;

    private final float[] accumulator = new float[PIECE];
    private final MemorySegment[] memories;
    private final long[] offsets;
    private int count;

    /** Sums of at most {@code maxRows} rows. */
    RowSum(int maxRows) {
        memories = new MemorySegment[maxRows];
        offsets = new long[maxRows];
    }

    void clear() {
        count = 0;
    }

    void add(MemorySegment memory, long offset) {
        memories[count] = memory;
        offsets[count++] = offset;
    }

    /**
     * Writes the sum of the rows; zeros if there are none. Afterwards the sum has to be cleared.
     */
    void store(MemorySegment target, long offset, int hidden) {
        for (int from = 0; from < hidden; from += PIECE) {
            int n = Math.min(PIECE, hidden - from);
            RowMath.clear(accumulator, n);
            RowMath.addBf16(accumulator, memories, offsets, count, n);
            RowMath.storeBf16(accumulator, target, offset + 2L * from, n);
            for (int i = 0; i < count; i++) {
                offsets[i] += 2L * n;
            }
        }
    }

    /** Writes the sums of {@code n} floats that lie at the offsets added. */
    void storeFloats(MemorySegment target, long offset, int n) {
        for (int k = 0; k < n; k++) {
            float sum = 0;
            for (int i = 0; i < count; i++) {
                sum += memories[i].get(ValueLayout.JAVA_FLOAT_UNALIGNED, offsets[i] + 4L * k);
            }
            target.set(ValueLayout.JAVA_FLOAT_UNALIGNED, offset + 4L * k, sum);
        }
    }
}
