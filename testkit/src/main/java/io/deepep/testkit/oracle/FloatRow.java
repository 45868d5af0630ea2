package io.deepep.testkit.oracle;

import io.deepep.Bf16;
import io.deepep.CombineFormat;
import io.deepep.LowLatencyFormat;
import io.deepep.Tensor;

/** One row's sum in fp32, operation by operation: what an implementation must return bit by bit. */
final class FloatRow {
    private final float[] sum;

    FloatRow(int hidden) {
        sum = new float[hidden];
    }

    /** Adds {@code weight} times the values of a row, one rounding for each operation. */
    void add(float[] values, float weight) {
        for (int h = 0; h < sum.length; h++) {
            sum[h] += weight * values[h];
        }
    }

    /** Adds {@code weight} times row {@code row} of {@code x} as it is. */
    void add(Tensor x, long row, double weight) {
        add(x.getFloats(row), (float) weight);
    }

    /** The sum rounded to BF16. */
    float[] rounded() {
        float[] values = new float[sum.length];
        for (int h = 0; h < values.length; h++) {
            values[h] = Bf16.toFloat(Bf16.fromFloat(sum[h]));
        }
        return values;
    }

    /**
     * Adds {@code weight} times what of some BF16 values arrives in a format, of which LogFMT
     * leaves bits open. In FP8, a channel's code is multiplied by the product of weight and scale,
     * and product and sum are rounded together.
     */
    void addTravelled(float[] values, CombineFormat format, float weight) {
        switch (format) {
            case BF16 -> add(values, weight);
            case FP8 -> Fp8Cast.of(values, LowLatencyFormat.FP8).addTo(sum, weight);
            case LOGFMT -> throw new IllegalArgumentException("LogFMT is compared by its bound");
        }
    }

    /** Adds a row in FP8: product and sum of a channel are rounded together. */
    void add(Fp8Cast row) {
        row.addTo(sum, 1);
    }

    /** Compares the rounded sum with row {@code row} of {@code actual}, BF16 [T,H]. */
    void requireSame(Tensor actual, long row, String what) {
        for (int h = 0; h < sum.length; h++) {
            long expected = Bf16.fromFloat(sum[h]) & 0xffffL;
            long seen = actual.getLong(row, h) & 0xffffL;
            if (expected != seen) {
                throw new OracleMismatch(
                        "%s, channel %s: expected bits 0x%x, saw 0x%x"
                                .formatted(what, h, expected, seen));
            }
        }
    }
}
