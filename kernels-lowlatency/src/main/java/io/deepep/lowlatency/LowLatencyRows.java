package io.deepep.lowlatency;

import io.deepep.CombineFormat;
import io.deepep.LowLatencyFormat;
import io.deepep.spi.RecordedFacts;
import io.deepep.spi.RowFormat;
import java.util.Locale;

/** What travels in an operation, for observers. Scales of every FP8 format travel as F32. */
public final class LowLatencyRows {
    private LowLatencyRows() {}

    /** The rows of a dispatch. */
    public static void dispatch(RecordedFacts facts, LowLatencyFormat format, int hidden) {
        describe(facts, LowLatencyLayout.rows(format, hidden));
    }

    /** The rows of a combine. */
    public static void combine(RecordedFacts facts, CombineFormat format, int hidden) {
        switch (format) {
            case BF16 -> describe(facts, RowFormat.bf16(hidden));
            case FP8 -> describe(facts, RowFormat.fp8(hidden));
            case LOGFMT -> facts.rows("logfmt10", LogFmt10.rowBytes(hidden));
        }
    }

    private static void describe(RecordedFacts facts, RowFormat row) {
        facts.rows(row.dtype().name().toLowerCase(Locale.ROOT), row.dataBytes());
    }
}
