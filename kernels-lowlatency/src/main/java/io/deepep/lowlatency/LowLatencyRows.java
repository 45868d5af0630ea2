package io.deepep.lowlatency;

import io.deepep.DType;
import io.deepep.Fp8E4m3;
import io.deepep.LowLatencyFormat;
import io.deepep.spi.RecordedFacts;

/** What travels in an operation, for observers. Scales of every FP8 format travel as F32. */
public final class LowLatencyRows {
    private LowLatencyRows() {}

    /** The rows of a dispatch. */
    public static void dispatch(RecordedFacts facts, LowLatencyFormat format, int hidden) {
        if (format.isFp8()) {
            facts.rows(
                    "fp8_e4m3",
                    hidden + (long) Float.BYTES * (hidden / Fp8E4m3.CHANNELS_PER_SCALE));
        } else {
            facts.rows("bf16", (long) DType.BF16.sizeBytes() * hidden);
        }
    }

    /** The rows of a combine. */
    public static void combine(RecordedFacts facts, boolean logFmt, int hidden) {
        if (logFmt) {
            facts.rows("logfmt10", LogFmt10.rowBytes(hidden));
        } else {
            facts.rows("bf16", (long) DType.BF16.sizeBytes() * hidden);
        }
    }
}
