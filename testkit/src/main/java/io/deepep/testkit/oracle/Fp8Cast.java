package io.deepep.testkit.oracle;

import io.deepep.LowLatencyFormat;
import io.deepep.ScaledRows;
import io.deepep.Tensor;
import java.util.Arrays;

/**
 * The cast of one row to FP8 E4M3 with a scale for each 128 channels, element by element: the
 * nearest code is looked up in the table of all values.
 *
 * <p>With {@code amax} the largest magnitude of a group, at least 1e-4: plain scales are {@code
 * amax * (1f/448f)} and elements are multiplied by {@code 448f/amax}; powers of two are the
 * smallest that is not below {@code amax/448}, and elements are multiplied by its reciprocal. NaN
 * does not count for {@code amax}, infinity counts as the largest float.
 */
public final class Fp8Cast {
    /** Channels that share a scale. */
    public static final int GROUP = 128;

    private static final float MIN_AMAX = 1e-4f;
    private static final float MAX = 448f;
    private static final int NUM_MAGNITUDES = 127;
    private static final double[] MAGNITUDES = magnitudes();

    private final byte[] codes;
    private final float[] scales;

    private Fp8Cast(byte[] codes, float[] scales) {
        this.codes = codes;
        this.scales = scales;
    }

    /** Casts row {@code row} of {@code x}, BF16 [T,H]. */
    public static Fp8Cast of(Tensor x, long row, LowLatencyFormat format) {
        return of(x.getFloats(row), format);
    }

    /** Casts a row. */
    public static Fp8Cast of(float[] row, LowLatencyFormat format) {
        int hidden = row.length;
        byte[] codes = new byte[hidden];
        float[] scales = new float[hidden / GROUP];
        float[] values = new float[GROUP];
        for (int group = 0; group < scales.length; group++) {
            float amax = MIN_AMAX;
            for (int i = 0; i < GROUP; i++) {
                values[i] = row[group * GROUP + i];
                float magnitude = Math.min(Math.abs(values[i]), Float.MAX_VALUE);
                amax = magnitude > amax ? magnitude : amax; // not for NaN
            }
            boolean plain = format == LowLatencyFormat.FP8;
            scales[group] = plain ? amax * (1f / MAX) : powerOfTwoNotBelow(amax / (double) MAX);
            float multiplier = plain ? MAX / amax : 1 / scales[group];
            for (int i = 0; i < GROUP; i++) {
                codes[group * GROUP + i] = nearest(values[i] * multiplier);
            }
        }
        return new Fp8Cast(codes, scales);
    }

    /** Row {@code row} of some that are FP8 already, whatever their scales. */
    static Fp8Cast given(ScaledRows rows, long row) {
        byte[] codes = new byte[(int) rows.elements().size(1)];
        for (int i = 0; i < codes.length; i++) {
            codes[i] = (byte) rows.elements().getLong(row, i);
        }
        return new Fp8Cast(codes, rows.scales().getFloats(row));
    }

    /** The E4M3 codes, one per channel. */
    public byte[] codes() {
        return codes.clone();
    }

    /** The scales, one per group. */
    public float[] scales() {
        return scales.clone();
    }

    /** Adds the row to a sum in fp32: each code times the product of weight and scale. */
    void addTo(float[] sum, float weight) {
        for (int i = 0; i < codes.length; i++) {
            sum[i] = Math.fma((float) value(codes[i]), weight * scales[i / GROUP], sum[i]);
        }
    }

    /** The scales' biased exponents, four in an int, the first in the lowest byte, zero padded. */
    public int[] packedScales() {
        int[] packed = new int[(scales.length + 3) / 4];
        for (int group = 0; group < scales.length; group++) {
            int code = Math.getExponent(scales[group]) + 127;
            packed[group / 4] |= code << (8 * (group % 4));
        }
        return packed;
    }

    /** The nearest code; of two equally near ones the even; beyond 448 the largest. */
    static byte nearest(float value) {
        if (Float.isNaN(value)) {
            return NUM_MAGNITUDES;
        }
        double magnitude = Math.abs((double) value);
        int place = Arrays.binarySearch(MAGNITUDES, magnitude);
        int best = place >= 0 ? place : nearer(magnitude, -place - 1);
        boolean negative = Float.floatToRawIntBits(value) < 0;
        return (byte) (negative ? best | 0x80 : best);
    }

    /** Of the codes {@code above} and the one before it, between which {@code magnitude} lies. */
    private static int nearer(double magnitude, int above) {
        if (above == NUM_MAGNITUDES) {
            return above - 1;
        }
        double farther = (MAGNITUDES[above] - magnitude) - (magnitude - MAGNITUDES[above - 1]);
        return farther < 0 || (farther == 0 && above % 2 == 0) ? above : above - 1;
    }

    static float powerOfTwoNotBelow(double value) {
        int exponent = Math.getExponent(value);
        return (float) Math.scalb(1.0, Math.scalb(1.0, exponent) < value ? exponent + 1 : exponent);
    }

    /** The value of an E4M3 code. */
    public static double value(byte code) {
        int magnitude = code & 0x7f;
        double value = magnitude == NUM_MAGNITUDES ? Double.NaN : MAGNITUDES[magnitude];
        return (code & 0x80) == 0 ? value : -value;
    }

    private static double[] magnitudes() {
        double[] values = new double[NUM_MAGNITUDES];
        for (int code = 0; code < NUM_MAGNITUDES; code++) {
            int exponent = code / 8;
            int mantissa = code % 8;
            values[code] =
                    exponent == 0
                            ? mantissa * 0x1p-9
                            : (8 + mantissa) * Math.scalb(1.0, exponent - 10);
        }
        return values;
    }
}
