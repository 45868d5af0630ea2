package io.deepep.bench.lowlatency;

import io.deepep.CombineFormat;

/** What travels in a combine. */
public enum CombineRows {
    /** Every selection's row. */
    BF16(CombineFormat.BF16, false),
    /** Every selection's row, as FP8. */
    FP8(CombineFormat.FP8, false),
    /** Every selection's row, as 10-bit logarithms. */
    LOGFMT(CombineFormat.LOGFMT, false),
    /** The weighted sum of a token's rows at each rank, BF16. */
    PRE_REDUCED(CombineFormat.BF16, true),
    /** That sum as FP8. */
    PRE_REDUCED_FP8(CombineFormat.FP8, true);

    private final CombineFormat format;
    private final boolean preReduced;

    CombineRows(CombineFormat format, boolean preReduced) {
        this.format = format;
        this.preReduced = preReduced;
    }

    CombineFormat format() {
        return format;
    }

    boolean preReduced() {
        return preReduced;
    }

    /**
     * What the plan of such a combine asks for.
     *
     * @throws IllegalArgumentException for sums in LogFMT, which are not measured
     */
    public static CombineRows of(CombineFormat format, boolean preReduced) {
        for (CombineRows rows : values()) {
            if (rows.format == format && rows.preReduced == preReduced) {
                return rows;
            }
        }
        throw new IllegalArgumentException(
                "format=" + format + " with preReduced=" + preReduced + " is not measured");
    }
}
