package io.deepep.host;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * Arithmetic on rows of hidden states: sums of BF16 rows in fp32, and the cast to FP8.
 *
 * <p>There are two implementations with the same bits: one with the Vector API, several times
 * faster, which the JVM only offers when started with {@code --add-modules jdk.incubator.vector},
 * and plain loops otherwise; {@link #isVectorized} tells. The choice is made once.
 *
 * <p>Elements lie in native byte order (little-endian on every supported machine) at byte offsets
 * that need no alignment. Accumulators are plain arrays owned by the caller; a row of 7168 channels
 * is 28 KiB of them. Nothing here allocates or synchronises. Every method checks its bounds and
 * throws {@link IndexOutOfBoundsException}.
 */
public final class RowMath {
    private static final boolean VECTORIZED =
            ModuleLayer.boot().findModule("jdk.incubator.vector").isPresent()
                    && VectorRows.isSupported();

    private RowMath() {}

    /** Whether the Vector API is used. */
    public static boolean isVectorized() {
        return VECTORIZED;
    }

    /** Sets {@code acc[0, n)} to zero. */
    public static void clear(float[] acc, int n) {
        Arrays.fill(acc, 0, n, 0f);
    }

    /**
     * {@code acc[i] += weight * src[i]} for {@code n} BF16 elements. The product is rounded to fp32
     * before it is added: no fused multiply-add, so that a GPU that does the same gets the same
     * bits.
     */
    public static void addScaledBf16(
            float[] acc, float weight, MemorySegment src, long offset, int n) {
        if (VECTORIZED) {
            VectorRows.addScaledBf16(acc, weight, src, offset, n);
        } else {
            PlainRows.addScaledBf16(acc, weight, src, offset, 0, n);
        }
    }

    /**
     * Adds {@code count} rows, each times its weight. The same bits as {@link
     * #addScaledBf16(float[], float, MemorySegment, long, int)} for one row after the other, but
     * about half as fast again out of memory, because several rows are read side by side.
     *
     * @param src the memory of each row
     * @param offsets where in it the row begins, in bytes
     */
    public static void addScaledBf16(
            float[] acc, float[] weights, MemorySegment[] src, long[] offsets, int count, int n) {
        int row = 0;
        if (VECTORIZED) {
            for (; row <= count - VectorRows.ROWS_AT_ONCE; row += VectorRows.ROWS_AT_ONCE) {
                VectorRows.addRows(acc, weights, src, offsets, row, n);
            }
        }
        for (; row < count; row++) {
            addScaledBf16(acc, weights[row], src[row], offsets[row], n);
        }
    }

    /**
     * Stores {@code acc[0, n)} as BF16, each element as {@link io.deepep.Bf16#fromFloat} rounds it.
     */
    public static void storeBf16(float[] acc, MemorySegment dst, long offset, int n) {
        if (VECTORIZED) {
            VectorRows.storeBf16(acc, dst, offset, n);
        } else {
            PlainRows.storeBf16(acc, dst, offset, 0, n);
        }
    }

    /**
     * Casts {@code n} BF16 elements to FP8 E4M3, with one F32 scale for every 128 of them.
     *
     * <p>Let {@code amax} be the largest magnitude of the group, NaN left out, clamped to [1e-4,
     * {@link Float#MAX_VALUE}]. The scale is {@code amax * (1f / 448f)} and elements are multiplied
     * by {@code 448f / amax}; with {@code powerOfTwo} the scale is {@code Ue8m0.ceilPowerOfTwo(amax
     * / 448f)} and elements are multiplied by its inverse. Each product is rounded by {@link
     * io.deepep.Fp8E4m3#fromFloat}: NaN stays NaN (0x7f), infinities saturate to ±448 with a finite
     * scale.
     *
     * @param bf16 the row, read from byte {@code offset}
     * @param fp8 receives {@code n} bytes at {@code fp8Offset}
     * @param scales receives {@code n / 128} floats at {@code scalesOffset}, one after the other
     * @param n a multiple of 128
     */
    public static void castFp8(
            MemorySegment bf16,
            long offset,
            MemorySegment fp8,
            long fp8Offset,
            MemorySegment scales,
            long scalesOffset,
            int n,
            boolean powerOfTwo) {
        if (VECTORIZED) {
            VectorRows.castFp8(bf16, offset, fp8, fp8Offset, scales, scalesOffset, n, powerOfTwo);
        } else {
            PlainRows.castFp8(bf16, offset, fp8, fp8Offset, scales, scalesOffset, n, powerOfTwo);
        }
    }

    /**
     * {@code acc[first + i] = fma(code[i], weight * scale, acc[first + i])} for {@code n} FP8 E4M3
     * elements, a multiple of 128, each 128 of which have an F32 scale. The factor is rounded to
     * fp32, and then product and sum once, together.
     *
     * @param src the row, codes from byte {@code codes}, scales from byte {@code scales}
     */
    public static void addScaledFp8(
            float[] acc,
            int first,
            float weight,
            MemorySegment src,
            long codes,
            long scales,
            int n) {
        if (VECTORIZED) {
            VectorRows.addScaledFp8(acc, first, weight, src, codes, scales, n);
        } else {
            PlainRows.addScaledFp8(acc, first, weight, src, codes, scales, n);
        }
    }
}
