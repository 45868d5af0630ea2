package io.deepep.testkit.oracle;

import io.deepep.DType;
import io.deepep.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/**
 * One row's sum of BF16 rows with, for each element, how far an implementation in fp32 arithmetic
 * may be off.
 *
 * <p>The sum is in binary64: of at most a few hundred BF16 numbers its error is far below the fp32
 * slack that the bound grants anyway.
 */
final class ExactRow {
    /** Relative error of one fp32 operation. */
    private static final double FP32_ROUNDING = 0x1p-24;

    private static final int BF16_MIN_EXPONENT = -126;

    /** Half a step of 2^(1/16), which 10-bit logarithms have, with room for the arithmetic. */
    private static final double LOGFMT_RELATIVE = 0.0225;

    /** What LogFMT may be off where numbers lie far below the largest of their block. */
    private static final double LOGFMT_ABSOLUTE = 1e-6;

    private final double[] sum;
    private final double[] magnitude;
    private final double[] error;
    private int terms;

    ExactRow(int hidden) {
        sum = new double[hidden];
        magnitude = new double[hidden];
        error = new double[hidden];
    }

    void clear() {
        Arrays.fill(sum, 0);
        Arrays.fill(magnitude, 0);
        Arrays.fill(error, 0);
        terms = 0;
    }

    /** Adds {@code weight} times row {@code row} of {@code x}, BF16 [N,H]. */
    void add(Tensor x, long row, double weight) {
        OracleMismatch.require(
                x.dtype() == DType.BF16, "dtype of a summand", DType.BF16, x.dtype());
        MemorySegment memory = x.segment();
        long at = x.offsetBytes(row, 0);
        for (int h = 0; h < sum.length; h++) {
            short bits = memory.get(ValueLayout.JAVA_SHORT_UNALIGNED, at + 2L * h);
            double term = weight * bf16(bits);
            sum[h] += term;
            magnitude[h] += Math.abs(term);
        }
        terms++;
    }

    /** Adds a partial sum with its error. */
    void add(ExactRow partial) {
        for (int h = 0; h < sum.length; h++) {
            sum[h] += partial.sum[h];
            magnitude[h] += partial.magnitude[h];
            error[h] += partial.error[h];
        }
        terms += partial.terms;
    }

    /** Grants the error of summing in fp32 and rounding to BF16 once. */
    void allowRounding() {
        for (int h = 0; h < sum.length; h++) {
            double before = error[h] + (terms + 1) * FP32_ROUNDING * magnitude[h];
            error[h] = before + halfUlp(Math.abs(sum[h]) + before);
        }
    }

    /** Grants what summands may be off that travelled as LogFMT. */
    void allowLogFmt() {
        for (int h = 0; h < sum.length; h++) {
            error[h] += LOGFMT_RELATIVE * magnitude[h] + LOGFMT_ABSOLUTE;
        }
    }

    /** Compares with row {@code row} of {@code actual}, BF16 [T,H]. */
    void requireNear(Tensor actual, long row, String what) {
        MemorySegment memory = actual.segment();
        long at = actual.offsetBytes(row, 0);
        for (int h = 0; h < sum.length; h++) {
            float seen = bf16(memory.get(ValueLayout.JAVA_SHORT_UNALIGNED, at + 2L * h));
            if (!(Math.abs(seen - sum[h]) <= error[h])) {
                throw new OracleMismatch(
                        "%s, channel %s: expected %s ± %s (%s summands), saw %s"
                                .formatted(what, h, sum[h], error[h], terms, seen));
            }
        }
    }

    double sum(int channel) {
        return sum[channel];
    }

    double error(int channel) {
        return error[channel];
    }

    /** Half the distance between the BF16 numbers around {@code value}. */
    static double halfUlp(double value) {
        return Math.scalb(1.0, Math.max(Math.getExponent(value), BF16_MIN_EXPONENT) - 8);
    }

    private static float bf16(short bits) {
        return Float.intBitsToFloat(bits << 16);
    }
}
