package io.deepep.lowlatency;

import io.deepep.CombineFormat;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyFormat;
import io.deepep.spi.KernelEnum;
import io.deepep.spi.RecordedFacts;
import io.deepep.spi.RowFormat;

/** How rows travel, as headers say it and ranks compare it. */
public final class LowLatencyFormats {
    /** Added to a dispatch's format: rows have weights. */
    public static final int WEIGHTED = 4;

    /** Added to a combine's format: ranks sum the rows of a token before they send them. */
    public static final int PRE_REDUCED = 4;

    private LowLatencyFormats() {}

    /** {@link LowLatencyFormat} for kernels, in the same order. */
    public enum Code implements KernelEnum {
        /** {@link LowLatencyFormat#BF16}. */
        BF16,
        /** {@link LowLatencyFormat#FP8}. */
        FP8,
        /** {@link LowLatencyFormat#FP8_POWER_OF_TWO}. */
        FP8_POWER_OF_TWO,
        /** {@link LowLatencyFormat#FP8_UE8M0}. */
        FP8_UE8M0;
    }

    /** A dispatch's format. */
    public static int dispatchCode(LowLatencyDispatchPlan plan) {
        return plan.format().ordinal() | (plan.topkWeights() != null ? WEIGHTED : 0);
    }

    /** What it is called in messages. */
    static String dispatchName(long code) {
        return name(LowLatencyFormat.values(), code & ~WEIGHTED)
                + ((code & WEIGHTED) != 0 ? " with weights" : "");
    }

    /** What travels in a combine: rows of each selection or of each rank's sum. */
    public static int combineCode(LowLatencyCombinePlan plan) {
        return plan.format().ordinal() | (plan.isPreReduced() ? PRE_REDUCED : 0);
    }

    /** What it is called in messages. */
    static String combineName(long code) {
        return ((code & PRE_REDUCED) != 0 ? "pre-reduced " : "")
                + name(CombineFormat.values(), code & ~PRE_REDUCED);
    }

    private static String name(Enum<?>[] formats, long code) {
        return code < 0 || code >= formats.length ? "format " + code : formats[(int) code].name();
    }

    /** Tells observers of the rows of a combine. Scales travel as F32. */
    public static void describe(RecordedFacts facts, CombineFormat format, int hidden) {
        switch (format) {
            case BF16 -> facts.rows(RowFormat.bf16(hidden));
            case FP8 -> facts.rows(RowFormat.fp8(hidden));
            case LOGFMT -> facts.rows("logfmt10", LogFmt10.rowBytes(hidden));
        }
    }
}
