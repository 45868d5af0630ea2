package io.deepep;

/**
 * The format in which rows travel in a combine. In every format, rows are given as BF16 and summed
 * in fp32; in formats other than BF16, the sender casts them, so that fewer bytes cross the links.
 * Normal mode also takes {@linkplain CombinePlan.Builder#scales FP8 rows}. The same on every rank.
 *
 * <p>The error of a format applies to each row that is summed, multiplied by the row's weight if it
 * has one. In normal mode across nodes, it applies again to the sum of each node. The tuning guide
 * says when to use which format.
 */
public enum CombineFormat {
    /** BF16 rows, sent unchanged. */
    BF16,

    /**
     * FP8 rows (E4M3) with an F32 scale for each 128 channels: 52 % of BF16's bytes. The hidden
     * size must be a multiple of 128.
     *
     * <p>Rows are cast as {@link Fp8E4m3#quantize} casts them; the receiver adds {@code code *
     * scale} to the sum, rounded to fp32 once ({@code fma}). In low-latency mode it first
     * multiplies the scale by the weight, rounded to fp32. The error is at most {@code max(|v| /
     * 16, a / 458752)}, where {@code a} is the largest magnitude of the 128 channels and at least
     * 1e-4 (plus {@code |v| * 2^-22} for the arithmetic). A NaN stays NaN and affects no other
     * channel. An infinity becomes the largest number that its scale can represent, about 3.4e38;
     * of the other channels that share the scale, only very large values survive.
     */
    FP8,

    /**
     * 10-bit logarithmic rows, in which each group of 128 channels shares a range of at most 32
     * octaves: 66 % of BF16's bytes, with a relative error of at most 2.2 % within that range.
     * Low-latency mode only.
     */
    LOGFMT
}
