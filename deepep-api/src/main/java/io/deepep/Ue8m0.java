package io.deepep;

/**
 * Converts power-of-two scales to and from one-byte codes (OCP microscaling "E8M0"): code {@code c}
 * is the biased exponent of the scale 2^(c-127).
 *
 * <p>Packed scales hold four codes in one little-endian I32: byte {@code j} of element {@code i} is
 * the code of channel group {@code 4*i+j}.
 */
public final class Ue8m0 {
    /** Number of codes in a packed element. */
    public static final int PER_INT = 4;

    private static final int BIAS = 127;
    private static final byte NAN = (byte) 0xff;

    private Ue8m0() {}

    /** Number of packed elements that hold the codes of so many scales. */
    public static int packedSize(int numScales) {
        return Math.ceilDiv(numScales, PER_INT);
    }

    /**
     * Converts a code to the power of two that it stands for; code 0 gives the subnormal 2^-127,
     * and code 255, which {@link #fromPowerOfTwo} never returns, NaN.
     */
    public static float toFloat(byte code) {
        return code == NAN ? Float.NaN : Math.scalb(1f, (code & 0xff) - BIAS);
    }

    /**
     * Converts a power of two to its code.
     *
     * @throws IllegalArgumentException if {@code scale} is not a power of two from 2^-127 to 2^127
     */
    public static byte fromPowerOfTwo(float scale) {
        int bits = Float.floatToRawIntBits(scale);
        if (bits == 0x00400000) {
            return 0;
        }
        if (bits <= 0 || (bits & 0x7fffff) != 0 || bits >= 0x7f800000) {
            throw new IllegalArgumentException(
                    "scale=%s is not a power of two from 2^-127 to 2^127; round it with ceilPowerOfTwo"
                            .formatted(scale));
        }
        return (byte) (bits >>> 23);
    }

    /**
     * The smallest power of two that is at least {@code value}, which must be positive, finite and
     * normal.
     */
    public static float ceilPowerOfTwo(float value) {
        int bits = Float.floatToRawIntBits(value);
        int exponent = (bits >>> 23) + ((bits & 0x7fffff) == 0 ? 0 : 1);
        return Float.intBitsToFloat(exponent << 23);
    }
}
