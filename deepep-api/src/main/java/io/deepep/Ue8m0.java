package io.deepep;

/**
 * Power-of-two scales stored as a biased exponent in one byte (OCP microscaling "E8M0"): code
 * {@code c} stands for 2^(c-127).
 *
 * <p>Packed scales hold four codes in one little-endian I32, channel group {@code 4*i+j} in byte
 * {@code j} of element {@code i}.
 */
public final class Ue8m0 {
    /** Codes in one packed element. */
    public static final int PER_INT = 4;

    private static final int BIAS = 127;

    private Ue8m0() {}

    /** The power of two of a code; code 0 gives the subnormal 2^-127. */
    public static float toFloat(byte code) {
        return Math.scalb(1f, (code & 0xff) - BIAS);
    }

    /**
     * The code of a power of two.
     *
     * @throws IllegalArgumentException if {@code scale} is not a positive power of two
     */
    public static byte fromPowerOfTwo(float scale) {
        int bits = Float.floatToRawIntBits(scale);
        if (bits == 0x00400000) {
            return 0;
        }
        if (bits <= 0 || (bits & 0x7fffff) != 0 || bits >= 0x7f800000) {
            throw new IllegalArgumentException(
                    "scale=" + scale + " is not a positive normal power of two");
        }
        return (byte) (bits >>> 23);
    }

    /** The smallest power of two that is not below a positive finite {@code value}. */
    public static float ceilPowerOfTwo(float value) {
        int bits = Float.floatToRawIntBits(value);
        int exponent = (bits >>> 23) + ((bits & 0x7fffff) == 0 ? 0 : 1);
        return Float.intBitsToFloat(exponent << 23);
    }
}
