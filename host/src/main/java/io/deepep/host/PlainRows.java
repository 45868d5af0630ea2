package io.deepep.host;

import io.deepep.Bf16;
import io.deepep.Fp8E4m3;
import io.deepep.Ue8m0;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** {@link RowMath} as plain loops. */
final class PlainRows {
    static final ValueLayout.OfShort SHORT = ValueLayout.JAVA_SHORT_UNALIGNED;
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;
    private static final int GROUP = Fp8E4m3.CHANNELS_PER_SCALE;
    private static final float MIN_AMAX = 1e-4f;
    private static final short INFINITY = 0x7f80;

    private PlainRows() {}

    static float element(MemorySegment src, long offset) {
        return Bf16.toFloat(src.get(SHORT, offset));
    }

    /**
     * {@code acc[i] += weight * src[i]} for {@code i} in {@code [from, to)}; a weight of 1 changes
     * no bits.
     */
    static void addScaledBf16(
            float[] acc, float weight, MemorySegment src, long offset, int from, int to) {
        for (int i = from; i < to; i++) {
            acc[i] += weight * element(src, offset + 2L * i);
        }
    }

    static void storeBf16(float[] acc, MemorySegment dst, long offset, int from, int to) {
        for (int i = from; i < to; i++) {
            dst.set(SHORT, offset + 2L * i, Bf16.fromFloat(acc[i]));
        }
    }

    static void castFp8(
            MemorySegment bf16,
            long offset,
            MemorySegment fp8,
            long fp8Offset,
            MemorySegment scales,
            long scalesOffset,
            int n,
            boolean powerOfTwo) {
        for (int from = 0; from < n; from += GROUP) {
            float amax = clampAmax(largest(bf16, offset + 2L * from));
            float scale = scale(amax, powerOfTwo);
            float multiplier = multiplier(amax, scale, powerOfTwo);
            scales.set(FLOAT, scalesOffset + from / GROUP * 4L, scale);
            for (int i = from; i < from + GROUP; i++) {
                float value = element(bf16, offset + 2L * i);
                fp8.set(
                        ValueLayout.JAVA_BYTE,
                        fp8Offset + i,
                        Fp8E4m3.fromFloat(value * multiplier));
            }
        }
    }

    static void addScaledFp8(
            float[] acc,
            int first,
            float weight,
            MemorySegment src,
            long codes,
            long scales,
            int n) {
        for (int from = 0; from < n; from += GROUP) {
            float factor = weight * src.get(FLOAT, scales + from / GROUP * 4L);
            for (int i = from; i < from + GROUP; i++) {
                float value = Fp8E4m3.toFloat(src.get(ValueLayout.JAVA_BYTE, codes + i));
                acc[first + i] = Math.fma(value, factor, acc[first + i]);
            }
        }
    }

    /**
     * The largest magnitude of a group as BF16 bits, which order like the values; NaN counts as 0.
     */
    private static int largest(MemorySegment bf16, long offset) {
        int largest = 0;
        for (int i = 0; i < GROUP; i++) {
            int magnitude = bf16.get(SHORT, offset + 2L * i) & 0x7fff;
            largest = Math.max(largest, magnitude > INFINITY ? 0 : magnitude);
        }
        return largest;
    }

    /** The amax of a group whose largest magnitude has the given BF16 bits. */
    static float clampAmax(int bits) {
        return Math.clamp(Bf16.toFloat((short) bits), MIN_AMAX, Float.MAX_VALUE);
    }

    static float scale(float amax, boolean powerOfTwo) {
        return powerOfTwo ? Ue8m0.ceilPowerOfTwo(amax / Fp8E4m3.MAX) : amax * (1f / Fp8E4m3.MAX);
    }

    static float multiplier(float amax, float scale, boolean powerOfTwo) {
        return powerOfTwo ? 1f / scale : Fp8E4m3.MAX / amax;
    }
}
