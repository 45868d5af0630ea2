package io.deepep.bench.lowlatency;

/** What travels in a combine. */
enum CombineRows {
    /** Every selection's row. */
    BF16,
    /** Every selection's row, as 10-bit logarithms. */
    LOGFMT,
    /** The weighted sum of a token's rows at each rank, BF16. */
    PRE_REDUCED
}
