package io.deepep.lowlatency;

import io.deepep.Bf16;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/**
 * A 10-bit logarithmic block format for 128 BF16 channels: 168 bytes instead of 256.
 *
 * <pre>
 *   f32 base    log2 of the smallest magnitude that has a code
 *   f32 step    distance of neighbouring codes in log2
 *   u8[160]     128 codes of 10 bits, least significant bit first: 9 bits magnitude, 1 bit sign
 * </pre>
 *
 * Magnitude code 0 is zero, code c stands for 2^(base + (c - 1) * step), rounded to fp32. The codes
 * span from the block's smallest magnitude to its largest, at most {@link #MAX_RANGE} octaves below
 * it, so a code is off by at most {@code step / 2} octaves: a relative error of 2^(step/2) - 1, at
 * most 2.2 %. Magnitudes below the span become its smallest code or zero, whichever is nearer. A
 * block that holds a NaN or an infinity decodes to NaN throughout.
 *
 * <p>Logarithms and powers are {@link StrictMath}'s in binary64, so that blocks and sums have the
 * same bits on every machine: ranks compare them. None is computed per channel. The logarithms come
 * out of a table, for BF16 has few magnitudes. The powers of a block are a geometric series, so
 * each is a product of two numbers out of small tables made for the block. Such a product is off by
 * at most 2^-44; where that leaves open which float is nearest, about once in 2^18 codes, the power
 * itself is computed.
 *
 * <p>An instance has scratch memory and serves one thread at a time; it allocates nothing. Loops
 * are short and many so that the JIT vectorises those that can be.
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

    /** The sign's place in a code, in a BF16 and in a binary32. */
    private static final int SIGN_BIT = 9;

    private static final int BF16_SIGN_BIT = 15;
    private static final int F32_SIGN_BIT = 31;

    /** The bits of BF16 infinity: all finite magnitudes are below. */
    private static final int INFINITY = 0x7f80;

    private static final int MAGNITUDE = 0x7fff;

    /** Powers whose exponents are a step apart. */
    private static final int NUM_FINE = 32;

    /** Powers whose exponents are {@link #NUM_FINE} steps apart. */
    private static final int NUM_COARSE = (LARGEST_CODE + 1) / NUM_FINE;

    /** What a product is granted to be off, relative: far more than it can be. */
    private static final double SLACK = 0x1p-43;

    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;
    private static final ValueLayout.OfShort SHORT = ValueLayout.JAVA_SHORT_UNALIGNED;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;

    /** log2 of every finite BF16 magnitude, by its bits. */
    private static final double[] LOG2 = new double[INFINITY];

    static {
        double ln2 = StrictMath.log(2);
        for (int magnitude = 0; magnitude < INFINITY; magnitude++) {
            LOG2[magnitude] = StrictMath.log(Bf16.toFloat((short) magnitude)) / ln2;
        }
    }

    private final short[] elements = new short[CHANNELS];
    private final int[] codes = new int[CHANNELS];
    private final double[] wide = new double[CHANNELS];
    private final float[] values = new float[CHANNELS];
    private final double[] coarse = new double[NUM_COARSE];
    private final double[] fine = new double[NUM_FINE];

    /** A codec for one thread. */
    public LogFmt10() {}

    /** Bytes of a row. */
    public static long rowBytes(int hidden) {
        return (long) hidden / CHANNELS * BLOCK_BYTES;
    }

    /** Encodes a row of BF16. */
    public void encodeRow(MemorySegment bf16, long from, MemorySegment to, long at, int hidden) {
        for (int c = 0; c < hidden; c += CHANNELS) {
            MemorySegment.copy(bf16, SHORT, from + 2L * c, elements, 0, CHANNELS);
            encode(to, at + (long) c / CHANNELS * BLOCK_BYTES);
        }
    }

    /**
     * {@code acc[i] += weight * value[i]} for a row, product and sum rounded to fp32 one after the
     * other.
     */
    public void addScaledRow(float[] acc, float weight, MemorySegment from, long at, int hidden) {
        for (int c = 0; c < hidden; c += CHANNELS) {
            decode(from, at + (long) c / CHANNELS * BLOCK_BYTES);
            for (int i = 0; i < CHANNELS; i++) {
                acc[c + i] += weight * values[i];
            }
        }
    }

    private void encode(MemorySegment to, long at) {
        int largest = 0;
        int smallest = INFINITY;
        for (int i = 0; i < CHANNELS; i++) {
            int magnitude = elements[i] & MAGNITUDE;
            largest = Math.max(largest, magnitude);
            smallest = Math.min(smallest, magnitude == 0 ? INFINITY : magnitude);
        }
        if (largest == 0 || largest >= INFINITY) {
            to.asSlice(at, BLOCK_BYTES).fill((byte) 0);
            to.set(FLOAT, at, largest == 0 ? 0 : Float.NaN);
            return;
        }
        double lowest = LOG2[largest] - MAX_RANGE;
        float base = (float) Math.max(LOG2[smallest], lowest);
        float step = (float) (Math.max(LOG2[largest] - base, 0) / (LARGEST_CODE - 1));
        to.set(FLOAT, at, base);
        to.set(FLOAT, at + 4, step);
        chooseCodes(base, step, LOG2[smallest] >= lowest ? smallest : firstWithCode(base));
        pack(to, at + 8);
    }

    /** The bits of the smallest BF16 magnitude that is not nearer to zero than to 2^base. */
    private static int firstWithCode(float base) {
        double half = StrictMath.pow(2, base) / 2;
        int first = Float.floatToRawIntBits((float) half) >>> 16;
        while (Bf16.toFloat((short) first) < half) {
            first++;
        }
        return first;
    }

    /**
     * The nearest code of every element.
     *
     * @param first the bits of the smallest magnitude that is not zero
     */
    private void chooseCodes(float base, float step, int first) {
        for (int i = 0; i < CHANNELS; i++) {
            wide[i] = LOG2[elements[i] & MAGNITUDE];
        }
        // Where step is 0 no magnitude is above the base: minus infinity or NaN, and code 1.
        for (int i = 0; i < CHANNELS; i++) {
            codes[i] = (int) Math.rint((wide[i] - base) / step);
        }
        for (int i = 0; i < CHANNELS; i++) {
            int code = 1 + Math.max(0, Math.min(codes[i], LARGEST_CODE - 1));
            int sign = elements[i] >> (BF16_SIGN_BIT - SIGN_BIT) & SIGN;
            codes[i] = sign | ((elements[i] & MAGNITUDE) < first ? 0 : code);
        }
    }

    /** Four codes in five bytes at a time. */
    private void pack(MemorySegment to, long at) {
        long next = at;
        for (int i = 0; i < CHANNELS; i += 4) {
            long low = codes[i] | (long) codes[i + 1] << 10;
            long high = codes[i + 2] | (long) codes[i + 3] << 10;
            to.set(INT, next, (int) (low | high << 20));
            to.set(ValueLayout.JAVA_BYTE, next + 4, (byte) (high >>> 12));
            next += 5;
        }
    }

    private void unpack(MemorySegment from, long at) {
        long next = at;
        for (int i = 0; i < CHANNELS; i += 4) {
            long four = from.get(INT, next) & 0xffffffffL;
            four |= (long) from.get(ValueLayout.JAVA_BYTE, next + 4) << 32;
            codes[i] = (int) four & (SIGN | LARGEST_CODE);
            codes[i + 1] = (int) (four >> 10) & (SIGN | LARGEST_CODE);
            codes[i + 2] = (int) (four >> 20) & (SIGN | LARGEST_CODE);
            codes[i + 3] = (int) (four >> 30) & (SIGN | LARGEST_CODE);
            next += 5;
        }
    }

    /** Leaves a block's values in {@link #values}. */
    private void decode(MemorySegment from, long at) {
        float base = from.get(FLOAT, at);
        if (Float.isNaN(base)) {
            Arrays.fill(values, Float.NaN);
            return;
        }
        float step = from.get(FLOAT, at + 4);
        unpack(from, at + 8);
        fillTables(base, step);
        for (int i = 0; i < CHANNELS; i++) {
            int magnitude = codes[i] & LARGEST_CODE;
            wide[i] = coarse[magnitude / NUM_FINE] * fine[magnitude % NUM_FINE];
        }
        if (!round()) {
            computePowers(base, step);
        }
        for (int i = 0; i < CHANNELS; i++) {
            int magnitude = (codes[i] & LARGEST_CODE) == 0 ? 0 : Float.floatToRawIntBits(values[i]);
            int sign = (codes[i] & SIGN) << (F32_SIGN_BIT - SIGN_BIT);
            // Signs come and go at random: a branch would be mispredicted half the time.
            values[i] = Float.intBitsToFloat(magnitude | sign);
        }
    }

    private void fillTables(float base, float step) {
        double ratio = Math.pow(2, step);
        fine[0] = 1;
        for (int i = 1; i < NUM_FINE; i++) {
            fine[i] = fine[i - 1] * ratio;
        }
        ratio = Math.pow(2, NUM_FINE * (double) step);
        // Of code 0, which stands for zero; it is here to save a subtraction from all others.
        coarse[0] = Math.pow(2, base - (double) step);
        for (int i = 1; i < NUM_COARSE; i++) {
            coarse[i] = coarse[i - 1] * ratio;
        }
    }

    /** Rounds {@link #wide} to floats; returns whether they are the nearest beyond doubt. */
    private boolean round() {
        int doubts = 0;
        for (int i = 0; i < CHANNELS; i++) {
            float below = (float) (wide[i] * (1 - SLACK));
            float above = (float) (wide[i] * (1 + SLACK));
            values[i] = below;
            doubts |= Float.floatToRawIntBits(below) ^ Float.floatToRawIntBits(above);
        }
        return doubts == 0;
    }

    private void computePowers(float base, float step) {
        for (int i = 0; i < CHANNELS; i++) {
            int magnitude = codes[i] & LARGEST_CODE;
            values[i] = (float) StrictMath.pow(2, base + (magnitude - 1) * (double) step);
        }
    }
}
