package io.deepep;

/**
 * What travels in a combine. In every format, rows are given as BF16 and summed in fp32; in formats
 * other than BF16, the sender casts them, so fewer bytes cross the links. The same on all ranks.
 *
 * <p>The error of a format counts once for each row that is summed, multiplied by the row's weight
 * if it has one. In normal mode across nodes it counts again for each node's sum. The tuning guide
 * says when to use which format.
 */
public enum CombineFormat {
    /** BF16 rows: nothing is lost on the way. */
    BF16,

    /**
     * FP8 rows (E4M3) with an F32 scale for each 128 channels: 52 % of BF16's bytes. Hidden is a
     * multiple of 128.
     *
     * <p>Rows are cast as {@link Fp8E4m3#quantize} casts them; the receiver takes {@code code *
     * scale}, rounded to fp32. The error is at most {@code max(|v| / 16, a / 458752)}, where {@code
     * a} is the largest magnitude of the 128 channels and at least 1e-4 (plus {@code |v| * 2^-22}
     * for the arithmetic). A NaN stays NaN and affects no other channel. An infinity becomes the
     * largest number that the scale allows, about 3.4e38; all but the largest of the other channels
     * in its group are lost.
     */
    FP8,

    /**
     * 10-bit logarithmic rows, in which each 128 channels share a range of at most 32 octaves: 66 %
     * of BF16's bytes, a relative error of at most 2.2 % within that range. Low-latency mode only.
     */
    LOGFMT
}
