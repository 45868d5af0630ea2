package io.deepep;

/**
 * What travels in a combine. Rows are given as BF16 and summed in fp32 in every format; a format
 * other than BF16 is cast by the rank that sends, so fewer bytes cross the links. The same on all
 * ranks.
 *
 * <p>What a number may be off because of its format comes once for each row that is summed, times
 * the row's weight where there is one, and across nodes once more for each node's sum (normal
 * mode). The docs' tuning guide says when to use which.
 */
public enum CombineFormat {
    /** BF16 rows: nothing is lost on the way. */
    BF16,

    /**
     * FP8 rows (E4M3) with an F32 scale for each 128 channels: 52 % of BF16's bytes. Hidden is a
     * multiple of 128.
     *
     * <p>Rows are cast as {@link Fp8E4m3#quantize} casts them; the receiver takes {@code code *
     * scale}, rounded to fp32. That is off by at most {@code max(|v| / 16, a / 458752)}, where
     * {@code a} is the largest magnitude of the 128 channels and at least 1e-4 (and {@code |v| *
     * 2^-22} for the arithmetic). A NaN stays one, alone; an infinity becomes the largest number
     * that its channels' scale can say, about 3.4e38, beside which all but the largest of its 128
     * channels are lost.
     */
    FP8,

    /**
     * 10-bit logarithmic rows, in which each 128 channels share a range of at most 32 octaves: 66 %
     * of BF16's bytes, a relative error of at most 2.2 % within that range. Low-latency mode alone.
     */
    LOGFMT
}
