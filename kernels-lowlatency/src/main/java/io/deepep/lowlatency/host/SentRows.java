package io.deepep.lowlatency.host;

import io.deepep.CombineFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.host.HostMemory;
import io.deepep.host.RowMath;
import io.deepep.lowlatency.Fp8Parts;
import io.deepep.lowlatency.LogFmt10;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * The rows of a combine: how each format lays them into a slot, and weighted sums of them in fp32.
 * Serves one thread.
 */
final class SentRows {
    private final int hidden;
    private final LogFmt10 logFmt = new LogFmt10();
    private final float[] sum;
    private final float[] weights;
    private final MemorySegment[] memories;
    private final long[] offsets;
    private int count;

    /** A sum before it is encoded. */
    private final MemorySegment rounded;

    SentRows(LowLatencyLimits limits) {
        this.hidden = limits.hidden();
        this.sum = new float[hidden];
        this.weights = new float[limits.maxTopk()];
        this.memories = new MemorySegment[limits.maxTopk()];
        this.offsets = new long[limits.maxTopk()];
        this.rounded = HostMemory.allocate(Arena.ofAuto(), 2L * hidden);
    }

    /** Puts a row of BF16 into a slot. */
    void put(CombineFormat format, MemorySegment bf16, long from, MemorySegment to, long slot) {
        switch (format) {
            case BF16 -> MemorySegment.copy(bf16, from, to, slot, 2L * hidden);
            case FP8 -> Fp8Parts.encodeRow(bf16, from, to, slot, hidden);
            case LOGFMT -> logFmt.encodeRow(bf16, from, to, slot, hidden);
        }
    }

    /** Begins a sum. */
    void clear() {
        count = 0;
    }

    /** Adds the row at {@code offset}, times its weight, after those that were added before. */
    void add(float weight, MemorySegment memory, long offset) {
        weights[count] = weight;
        memories[count] = memory;
        offsets[count++] = offset;
    }

    /** Stores the sum of the added rows, which are in {@code format}, as BF16. */
    void storeSum(CombineFormat format, MemorySegment to, long at) {
        RowMath.clear(sum, hidden);
        if (format == CombineFormat.BF16) {
            RowMath.addScaledBf16(sum, weights, memories, offsets, count, hidden);
        }
        for (int i = 0; i < count && format != CombineFormat.BF16; i++) {
            if (format == CombineFormat.FP8) {
                Fp8Parts.addScaledRow(sum, weights[i], memories[i], offsets[i], hidden);
            } else {
                logFmt.addScaledRow(sum, weights[i], memories[i], offsets[i], hidden);
            }
        }
        RowMath.storeBf16(sum, to, at, hidden);
    }

    /** Puts the sum of the added rows, which are BF16, into a slot. */
    void putSum(CombineFormat format, MemorySegment to, long slot) {
        if (format == CombineFormat.BF16) {
            storeSum(CombineFormat.BF16, to, slot);
        } else {
            storeSum(CombineFormat.BF16, rounded, 0);
            put(format, rounded, 0, to, slot);
        }
    }
}
