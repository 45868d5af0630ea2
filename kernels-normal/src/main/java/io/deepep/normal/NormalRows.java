package io.deepep.normal;

import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.spi.RowFormat;

/** What travels in an operation, and what of it is given so. */
public final class NormalRows {
    private NormalRows() {}

    /** The rows of a combine. */
    public static RowFormat ofCombine(CombinePlan plan) {
        int hidden = plan.hidden();
        return switch (plan.format()) {
            case BF16 -> RowFormat.bf16(hidden);
            case FP8 -> RowFormat.fp8(hidden);
            case LOGFMT -> throw new IllegalArgumentException("normal mode has no LOGFMT");
        };
    }

    /** Whether a combine's rows have the bytes that travel, each row for itself. */
    public static boolean travelAsTheyAre(CombinePlan plan) {
        return plan.format() == CombineFormat.BF16
                || (plan.scales() != null
                        && RowFormat.fp8(plan.hidden()).isFormOf(plan.x(), plan.scales()));
    }
}
