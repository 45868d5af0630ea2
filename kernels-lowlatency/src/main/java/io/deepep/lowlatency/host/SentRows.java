package io.deepep.lowlatency.host;

import io.deepep.CombineFormat;
import io.deepep.host.RowMath;
import io.deepep.lowlatency.Fp8Parts;
import io.deepep.lowlatency.LogFmt10;
import java.lang.foreign.MemorySegment;

/** The rows of a combine as each format lays them into a slot. Serves one thread. */
final class SentRows {
    private final int hidden;
    private final LogFmt10 logFmt = new LogFmt10();

    SentRows(int hidden) {
        this.hidden = hidden;
    }

    /** Puts a row of BF16 into a slot. */
    void put(CombineFormat format, MemorySegment bf16, long from, MemorySegment to, long slot) {
        switch (format) {
            case BF16 -> MemorySegment.copy(bf16, from, to, slot, 2L * hidden);
            case FP8 -> Fp8Parts.encodeRow(bf16, from, to, slot, hidden);
            case LOGFMT -> logFmt.encodeRow(bf16, from, to, slot, hidden);
        }
    }

    /** Adds {@code count} rows, each times its weight, one after the other. */
    void add(
            CombineFormat format,
            float[] sum,
            float[] weights,
            MemorySegment[] memories,
            long[] slots,
            int count) {
        if (format == CombineFormat.BF16) {
            RowMath.addScaledBf16(sum, weights, memories, slots, count, hidden);
            return;
        }
        for (int i = 0; i < count; i++) {
            if (format == CombineFormat.FP8) {
                Fp8Parts.addScaledRow(sum, weights[i], memories[i], slots[i], hidden);
            } else {
                logFmt.addScaledRow(sum, weights[i], memories[i], slots[i], hidden);
            }
        }
    }
}
