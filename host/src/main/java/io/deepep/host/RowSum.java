package io.deepep.host;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/**
 * The sum of a few rows, BF16 or FP8, in the order in which they were added: fp32 accumulation from
 * zero, one rounding at the end. Belongs to one thread; allocates nothing after it was made.
 *
 * <p>BF16 rows are read side by side in groups of eight, so that as many streams of memory are in
 * flight and sums stay in registers. A group that is not full is filled up with a row of zeros,
 * which changes no bits: a sum that began at +0 is never -0.
 */
public final class RowSum {
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;

    private final MemorySegment[] memories;
    private final long[] offsets;
    private final boolean[] fp8;
    private final float[] ones;
    private final float[] accumulator;
    private final MemorySegment zeros;
    private int count;
    private boolean anyFp8;

    /** Sums of at most {@code maxRows} rows of at most {@code maxElements} elements. */
    public RowSum(int maxRows, int maxElements) {
        int padded = Math.ceilDiv(maxRows, VectorRows.GROUP_ROWS) * VectorRows.GROUP_ROWS;
        memories = new MemorySegment[padded];
        offsets = new long[padded];
        fp8 = new boolean[padded];
        ones = new float[padded];
        Arrays.fill(ones, 1);
        accumulator = new float[maxElements];
        // Off-heap like every row, so that the loops see one kind of memory.
        zeros = HostMemory.allocate(Arena.ofAuto(), 2L * maxElements);
    }

    /** Begins a new sum. */
    public void clear() {
        count = 0;
        anyFp8 = false;
    }

    /** Adds the row that begins at byte {@code offset} of {@code memory}. */
    public void add(MemorySegment memory, long offset) {
        fp8[count] = false;
        memories[count] = memory;
        offsets[count++] = offset;
    }

    /**
     * Adds the row of FP8 codes that begins at byte {@code offset} of {@code memory}, with its
     * scales behind them; see {@link RowMath#addScaledFp8}.
     */
    public void addFp8(MemorySegment memory, long offset) {
        fp8[count] = true;
        anyFp8 = true;
        memories[count] = memory;
        offsets[count++] = offset;
    }

    /** Writes the sum of the first {@code n} elements of the rows; zeros if there are none. */
    public void store(MemorySegment target, long offset, int n) {
        if (anyFp8 || !RowMath.isVectorized()) {
            RowMath.clear(accumulator, n);
            for (int row = 0; row < count; row++) {
                addRow(row, n);
            }
            RowMath.storeBf16(accumulator, target, offset, n);
            return;
        }
        int padded = Math.ceilDiv(count, VectorRows.GROUP_ROWS) * VectorRows.GROUP_ROWS;
        Arrays.fill(memories, count, padded, zeros);
        Arrays.fill(offsets, count, padded, 0);
        if (padded == VectorRows.GROUP_ROWS) {
            VectorRows.sumGroup(memories, offsets, target, offset, n);
            return;
        }
        RowMath.clear(accumulator, n);
        RowMath.addScaledBf16(accumulator, ones, memories, offsets, padded, n);
        RowMath.storeBf16(accumulator, target, offset, n);
    }

    private void addRow(int row, int n) {
        long at = offsets[row];
        if (fp8[row]) {
            RowMath.addScaledFp8(accumulator, 0, 1, memories[row], at, at + n, n);
        } else {
            RowMath.addScaledBf16(accumulator, 1, memories[row], at, n);
        }
    }

    /** Writes the sums of {@code n} floats that lie at the offsets added. */
    public void storeFloats(MemorySegment target, long offset, int n) {
        for (int k = 0; k < n; k++) {
            float sum = 0;
            for (int row = 0; row < count; row++) {
                sum += memories[row].get(FLOAT, offsets[row] + 4L * k);
            }
            target.set(FLOAT, offset + 4L * k, sum);
        }
    }
}
