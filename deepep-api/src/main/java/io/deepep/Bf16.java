package io.deepep;

/** Converts between {@code float} (IEEE binary32) and {@link DType#BF16}. */
public final class Bf16 {
    private static final int ROUNDING_BIAS = 0x7fff;
    private static final short QUIET_NAN = (short) 0x7fff;

    private Bf16() {}

    /** Converts a BF16 bit pattern to the {@code float} of the same value. */
    public static float toFloat(short bits) {
        return Float.intBitsToFloat(bits << 16);
    }

    /**
     * Rounds to the nearest BF16, ties to even. Overflow gives infinity; every NaN gives the quiet
     * NaN 0x7fff.
     */
    public static short fromFloat(float value) {
        if (Float.isNaN(value)) {
            return QUIET_NAN;
        }
        int bits = Float.floatToRawIntBits(value);
        return (short) ((bits + ROUNDING_BIAS + ((bits >>> 16) & 1)) >>> 16);
    }
}
