package io.deepep;

import java.util.Arrays;

/**
 * Converts between {@code float} (IEEE binary32) and {@link DType#FP8_E4M3} (OCP 8-bit floating
 * point, E4M3: bias 7, no infinities, NaN is {@code S.1111.111}).
 */
public final class Fp8E4m3 {
    /** Largest finite value. */
    public static final float MAX = 448f;

    /** Channels that share one scale. */
    public static final int CHANNELS_PER_SCALE = 128;

    private static final float MIN_AMAX = 1e-4f;
    private static final int MANTISSA_BITS = 3;
    private static final int DROPPED_BITS = 23 - MANTISSA_BITS;
    private static final int BIAS_DIFFERENCE = 127 - 7;
    private static final float SMALLEST_NORMAL = 0x1p-6f;
    private static final float[] VALUES = new float[256];

    static {
        for (int i = 0; i < 256; i++) {
            VALUES[i] = decode(i);
        }
    }

    private Fp8E4m3() {}

    /** Converts an E4M3 bit pattern to the {@code float} of the same value. */
    public static float toFloat(byte bits) {
        return VALUES[bits & 0xff];
    }

    /**
     * Rounds to the nearest E4M3, ties to even. Magnitudes above 448, including infinity, give
     * ±448; NaN gives NaN (0x7f).
     */
    public static byte fromFloat(float value) {
        if (Float.isNaN(value)) {
            return 0x7f;
        }
        int bits = Float.floatToRawIntBits(value);
        int sign = (bits >>> 24) & 0x80;
        float magnitude = Math.abs(value);
        if (magnitude >= MAX) {
            return (byte) (sign | 0x7e);
        }
        if (magnitude < SMALLEST_NORMAL) {
            // Subnormals are multiples of 2^-9; rint is ties-to-even, and 8 is the code of the
            // smallest normal.
            return (byte) (sign | (int) Math.rint(magnitude * 0x1p9f));
        }
        int abs = bits & 0x7fffffff;
        int rounded = abs + (1 << (DROPPED_BITS - 1)) - 1 + ((abs >>> DROPPED_BITS) & 1);
        int code = (rounded >>> DROPPED_BITS) - (BIAS_DIFFERENCE << MANTISSA_BITS);
        return (byte) (sign | Math.min(code, 0x7e));
    }

    /**
     * Casts host rows to FP8, as a low-latency dispatch in {@link LowLatencyFormat#FP8} does. Each
     * group of 128 channels has the scale {@code amax * (1f / 448)}, where {@code amax} is their
     * largest magnitude, but at least 1e-4; a channel is approximately its code times the scale.
     * For {@code amax}, NaN is ignored, and infinity counts as the largest finite float.
     *
     * @param rows [T,H] on the host, H a multiple of 128
     * @param codes receives the codes, FP8_E4M3 [T,H] on the host
     * @param scales receives the scales, F32 [T,H/128] on the host
     * @throws IllegalArgumentException if a shape or type is not as above
     */
    public static void quantize(Tensor rows, Tensor codes, Tensor scales) {
        checkShapes(rows, codes, scales);
        for (long t = 0; t < rows.size(0); t++) {
            float[] row = rows.getFloats(t);
            for (int from = 0; from < row.length; from += CHANNELS_PER_SCALE) {
                float amax = MIN_AMAX;
                for (int i = from; i < from + CHANNELS_PER_SCALE; i++) {
                    float magnitude = Math.min(Math.abs(row[i]), Float.MAX_VALUE);
                    amax = magnitude > amax ? magnitude : amax; // not for NaN
                }
                scales.setFloat(amax * (1f / MAX), t, from / CHANNELS_PER_SCALE);
                float multiplier = MAX / amax;
                for (int i = from; i < from + CHANNELS_PER_SCALE; i++) {
                    codes.setFloat(row[i] * multiplier, t, i);
                }
            }
        }
    }

    private static void checkShapes(Tensor rows, Tensor codes, Tensor scales) {
        boolean fit =
                rows.rank() == 2
                        && rows.size(1) % CHANNELS_PER_SCALE == 0
                        && codes.dtype() == DType.FP8_E4M3
                        && Arrays.equals(codes.shape(), rows.shape())
                        && scales.dtype() == DType.F32
                        && Arrays.equals(
                                scales.shape(),
                                new long[] {rows.size(0), rows.size(1) / CHANNELS_PER_SCALE});
        if (!fit) {
            throw new IllegalArgumentException(
                    ("rows=%s, codes=%s, scales=%s do not match; give rows [T,H] with H a multiple of"
                                    + " 128, codes FP8_E4M3 [T,H] and scales F32 [T,H/128]")
                            .formatted(rows, codes, scales));
        }
    }

    private static float decode(int code) {
        int exponent = (code >>> MANTISSA_BITS) & 0xf;
        int mantissa = code & 0x7;
        float magnitude;
        if (exponent == 0xf && mantissa == 0x7) {
            magnitude = Float.NaN;
        } else if (exponent == 0) {
            magnitude = mantissa * 0x1p-9f;
        } else {
            magnitude = Math.scalb(1f + mantissa / 8f, exponent - 7);
        }
        return (code & 0x80) == 0 ? magnitude : -magnitude;
    }
}
