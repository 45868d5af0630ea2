package io.deepep.lowlatency;

import io.deepep.CombineFormat;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyPlan;
import io.deepep.spi.KernelEnum;
import io.deepep.spi.RecordedFacts;
import io.deepep.spi.RowFormat;

/** How rows travel, as headers say it and ranks compare it: a format, an option and their size. */
public final class LowLatencyFormats {
    /** Of a dispatch: rows have weights. Of a combine: it is pre-reduced. */
    private static final int OPTION = 4;

    private static final int HIDDEN_SHIFT = 3;

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
        return code(plan.format(), plan.topkWeights() != null, plan);
    }

    /** What it is called in messages. */
    static String dispatchName(long code) {
        return name(LowLatencyFormat.values(), code)
                + ((code & OPTION) != 0 ? " with weights" : "");
    }

    /** What travels in a combine: rows of each selection or of each rank's sum. */
    public static int combineCode(LowLatencyCombinePlan plan) {
        return code(plan.format(), plan.isPreReduced(), plan);
    }

    /** What it is called in messages. */
    static String combineName(long code) {
        return ((code & OPTION) != 0 ? "pre-reduced " : "") + name(CombineFormat.values(), code);
    }

    /** The hidden size in a code. */
    static long hidden(long code) {
        return code >>> HIDDEN_SHIFT;
    }

    private static int code(Enum<?> format, boolean option, LowLatencyPlan plan) {
        return format.ordinal() | (option ? OPTION : 0) | plan.hidden() << HIDDEN_SHIFT;
    }

    private static String name(Enum<?>[] formats, long code) {
        int format = (int) (code & OPTION - 1);
        return format < formats.length ? formats[format].name() : "format " + format;
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
