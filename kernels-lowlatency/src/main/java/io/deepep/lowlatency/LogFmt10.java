package io.deepep.lowlatency;

import io.deepep.Bf16;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * A 10-bit logarithmic block format for 128 BF16 channels: 168 bytes instead of 256.
 *
 * <pre>
 *   f32 base    log2 of the smallest magnitude that has a code
 *   f32 step    distance of neighbouring codes in log2
 *   u8[160]     128 codes of 10 bits, least significant bit first: 9 bits magnitude, 1 bit sign
 * </pre>
 *
 * Magnitude code 0 is zero, code c stands for 2^(base + (c - 1) * step). The codes span from the
 * block's smallest magnitude to its largest, at most {@link #MAX_RANGE} octaves below it, so a code
 * is off by at most {@code step / 2} octaves: a relative error of 2^(step/2) - 1, at most 2.2 %.
 * Magnitudes below the span become its smallest code or zero, whichever is nearer. A block that
 * holds a NaN or an infinity decodes to NaN throughout.
 */
public final class LogFmt10 {
    /** Channels of a block. */
    public static final int CHANNELS = 128;

    /** Octaves below the largest magnitude that codes can reach. */
    public static final int MAX_RANGE = 32;

    /** Bytes of a block. */
    public static final int BLOCK_BYTES = 8 + CHANNELS * 10 / 8;

    private static final int LARGEST_CODE = 511;
    private static final int SIGN = 512;
    private static final int MASK = 1023;
    private static final double LN2 = Math.log(2);
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;
    private static final ValueLayout.OfShort SHORT = ValueLayout.JAVA_SHORT_UNALIGNED;

    private LogFmt10() {}

    /** Bytes of a row. */
    public static long rowBytes(int hidden) {
        return (long) hidden / CHANNELS * BLOCK_BYTES;
    }

    /** Encodes a row of BF16. */
    public static void encodeRow(
            MemorySegment bf16, long from, MemorySegment to, long at, int hidden) {
        for (int c = 0; c < hidden; c += CHANNELS) {
            encode(bf16, from + 2L * c, to, at + (long) c / CHANNELS * BLOCK_BYTES);
        }
    }

    /**
     * {@code acc[i] += weight * value[i]} for a row, product and sum rounded to fp32 one after the
     * other.
     */
    public static void addScaledRow(
            float[] acc, float weight, MemorySegment from, long at, int hidden) {
        for (int c = 0; c < hidden; c += CHANNELS) {
            addScaled(acc, c, weight, from, at + (long) c / CHANNELS * BLOCK_BYTES);
        }
    }

    /** Encodes 128 BF16 elements into a block. */
    public static void encode(MemorySegment bf16, long from, MemorySegment to, long at) {
        float largest = 0;
        float smallest = Float.POSITIVE_INFINITY;
        boolean finite = true;
        for (int i = 0; i < CHANNELS; i++) {
            float magnitude = Math.abs(Bf16.toFloat(bf16.get(SHORT, from + 2L * i)));
            finite &= Float.isFinite(magnitude);
            largest = Math.max(largest, magnitude);
            smallest = magnitude > 0 ? Math.min(smallest, magnitude) : smallest;
        }
        if (!finite || largest == 0) {
            writeConstant(to, at, finite ? 0 : Float.NaN);
            return;
        }
        double top = log2(largest);
        float base = (float) Math.max(log2(smallest), top - MAX_RANGE);
        float step = (float) (Math.max(top - base, 0) / (LARGEST_CODE - 1));
        to.set(FLOAT, at, base);
        to.set(FLOAT, at + 4, step);
        long bits = 0;
        int numBits = 0;
        long next = at + 8;
        for (int i = 0; i < CHANNELS; i++) {
            bits |=
                    (long) code(Bf16.toFloat(bf16.get(SHORT, from + 2L * i)), base, step)
                            << numBits;
            for (numBits += 10; numBits >= 8; numBits -= 8) {
                to.set(ValueLayout.JAVA_BYTE, next++, (byte) bits);
                bits >>>= 8;
            }
        }
    }

    private static void writeConstant(MemorySegment to, long at, float base) {
        to.asSlice(at, BLOCK_BYTES).fill((byte) 0);
        to.set(FLOAT, at, base);
    }

    private static int code(float value, float base, float step) {
        int sign = Float.floatToRawIntBits(value) < 0 ? SIGN : 0;
        double magnitude = Math.abs((double) value);
        if (magnitude < Math.pow(2, base) / 2) {
            return sign;
        }
        double steps = step == 0 ? 0 : Math.rint((log2(magnitude) - base) / step);
        return sign | (int) Math.clamp(1 + steps, 1, LARGEST_CODE);
    }

    private static double log2(double value) {
        return Math.log(value) / LN2;
    }

    private static void addScaled(
            float[] acc, int first, float weight, MemorySegment from, long at) {
        float base = from.get(FLOAT, at);
        float step = from.get(FLOAT, at + 4);
        long bits = 0;
        int numBits = 0;
        long next = at + 8;
        for (int i = 0; i < CHANNELS; i++) {
            for (; numBits < 10; numBits += 8) {
                bits |= (from.get(ValueLayout.JAVA_BYTE, next++) & 0xffL) << numBits;
            }
            acc[first + i] += weight * value((int) bits & MASK, base, step);
            bits >>>= 10;
            numBits -= 10;
        }
    }

    private static float value(int code, float base, float step) {
        if (Float.isNaN(base)) {
            return Float.NaN;
        }
        int magnitudeCode = code & LARGEST_CODE;
        // StrictMath: the same bits on every machine, because ranks compare their sums.
        float magnitude =
                magnitudeCode == 0
                        ? 0
                        : (float) StrictMath.pow(2, base + (magnitudeCode - 1) * (double) step);
        return (code & SIGN) == 0 ? magnitude : -magnitude;
    }
}
