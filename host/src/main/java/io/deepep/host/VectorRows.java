package io.deepep.host;

import static jdk.incubator.vector.VectorOperators.B2I;
import static jdk.incubator.vector.VectorOperators.I2B;
import static jdk.incubator.vector.VectorOperators.I2S;
import static jdk.incubator.vector.VectorOperators.LSHL;
import static jdk.incubator.vector.VectorOperators.LSHR;
import static jdk.incubator.vector.VectorOperators.S2I;

import io.deepep.Bf16;
import io.deepep.Fp8E4m3;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import jdk.incubator.vector.ByteVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.ShortVector;
import jdk.incubator.vector.VectorMask;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorShape;
import jdk.incubator.vector.VectorSpecies;

/**
 * {@link RowMath} with the Vector API. Only to be touched where the module {@code
 * jdk.incubator.vector} is present.
 *
 * <p>No method takes or returns a vector: where the compiler does not inline such a call, and in a
 * large caller it may not, every vector becomes an object. So loops repeat how a row is read.
 */
final class VectorRows {
    private static final VectorSpecies<Float> FLOATS = FloatVector.SPECIES_PREFERRED;
    private static final VectorSpecies<Integer> INTS = FLOATS.withLanes(int.class);
    private static final VectorSpecies<Short> SHORTS =
            VectorSpecies.of(
                    short.class, VectorShape.forBitSize(Math.max(64, FLOATS.vectorBitSize() / 2)));
    private static final VectorSpecies<Short> FULL_SHORTS = FLOATS.withLanes(short.class);
    private static final VectorSpecies<Byte> BYTES =
            VectorSpecies.of(
                    byte.class, VectorShape.forBitSize(Math.max(64, FLOATS.vectorBitSize() / 4)));
    private static final ByteOrder ORDER = ByteOrder.nativeOrder();
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;
    private static final int LANES = FLOATS.length();
    private static final int GROUP = Fp8E4m3.CHANNELS_PER_SCALE;

    /**
     * Rows that {@link #addRows} reads side by side: more memory streams in flight, and the
     * accumulators are read and written once for all.
     */
    static final int ROWS_AT_ONCE = 4;

    /** Rows that {@link #sumGroup} reads side by side. */
    static final int GROUP_ROWS = 2 * ROWS_AT_ONCE;

    private static final short INFINITY = 0x7f80;

    private VectorRows() {}

    /** Whether this machine's vectors are wide enough: 128 bits for sums. */
    static boolean isSupported() {
        return FLOATS.vectorBitSize() >= 128;
    }

    static void addScaledBf16(float[] acc, float weight, MemorySegment src, long offset, int n) {
        int whole = FLOATS.loopBound(n);
        for (int i = 0; i < whole; i += LANES) {
            FloatVector sum = FloatVector.fromArray(FLOATS, acc, i);
            ShortVector row = ShortVector.fromMemorySegment(SHORTS, src, offset + 2L * i, ORDER);
            IntVector bits = (IntVector) row.convertShape(S2I, INTS, 0);
            sum = sum.add(bits.lanewise(LSHL, 16).reinterpretAsFloats().mul(weight));
            sum.intoArray(acc, i);
        }
        PlainRows.addScaledBf16(acc, weight, src, offset, whole, n);
    }

    /** Adds {@link #ROWS_AT_ONCE} rows, beginning with row {@code first} of the arrays. */
    static void addRows(
            float[] acc, float[] weights, MemorySegment[] src, long[] offsets, int first, int n) {
        float w0 = weights[first];
        float w1 = weights[first + 1];
        float w2 = weights[first + 2];
        float w3 = weights[first + 3];
        MemorySegment s0 = src[first];
        MemorySegment s1 = src[first + 1];
        MemorySegment s2 = src[first + 2];
        MemorySegment s3 = src[first + 3];
        long o0 = offsets[first];
        long o1 = offsets[first + 1];
        long o2 = offsets[first + 2];
        long o3 = offsets[first + 3];
        int whole = FLOATS.loopBound(n);
        for (int i = 0; i < whole; i += LANES) {
            long at = 2L * i;
            FloatVector sum = FloatVector.fromArray(FLOATS, acc, i);
            ShortVector row = ShortVector.fromMemorySegment(SHORTS, s0, o0 + at, ORDER);
            IntVector bits = (IntVector) row.convertShape(S2I, INTS, 0);
            sum = sum.add(bits.lanewise(LSHL, 16).reinterpretAsFloats().mul(w0));
            row = ShortVector.fromMemorySegment(SHORTS, s1, o1 + at, ORDER);
            bits = (IntVector) row.convertShape(S2I, INTS, 0);
            sum = sum.add(bits.lanewise(LSHL, 16).reinterpretAsFloats().mul(w1));
            row = ShortVector.fromMemorySegment(SHORTS, s2, o2 + at, ORDER);
            bits = (IntVector) row.convertShape(S2I, INTS, 0);
            sum = sum.add(bits.lanewise(LSHL, 16).reinterpretAsFloats().mul(w2));
            row = ShortVector.fromMemorySegment(SHORTS, s3, o3 + at, ORDER);
            bits = (IntVector) row.convertShape(S2I, INTS, 0);
            sum = sum.add(bits.lanewise(LSHL, 16).reinterpretAsFloats().mul(w3));
            sum.intoArray(acc, i);
        }
        for (int row = first; row < first + ROWS_AT_ONCE; row++) {
            PlainRows.addScaledBf16(acc, weights[row], src[row], offsets[row], whole, n);
        }
    }

    /**
     * Stores the sum of the first {@link #GROUP_ROWS} rows of the arrays, rounded once: no
     * accumulator in memory.
     */
    static void sumGroup(
            MemorySegment[] src, long[] offsets, MemorySegment dst, long offset, int n) {
        MemorySegment s0 = src[0];
        MemorySegment s1 = src[1];
        MemorySegment s2 = src[2];
        MemorySegment s3 = src[3];
        MemorySegment s4 = src[4];
        MemorySegment s5 = src[5];
        MemorySegment s6 = src[6];
        MemorySegment s7 = src[7];
        long o0 = offsets[0];
        long o1 = offsets[1];
        long o2 = offsets[2];
        long o3 = offsets[3];
        long o4 = offsets[4];
        long o5 = offsets[5];
        long o6 = offsets[6];
        long o7 = offsets[7];
        int whole = FLOATS.loopBound(n);
        for (int i = 0; i < whole; i += LANES) {
            long at = 2L * i;
            FloatVector sum = FloatVector.zero(FLOATS);
            ShortVector row = ShortVector.fromMemorySegment(SHORTS, s0, o0 + at, ORDER);
            IntVector bits = (IntVector) row.convertShape(S2I, INTS, 0);
            sum = sum.add(bits.lanewise(LSHL, 16).reinterpretAsFloats());
            row = ShortVector.fromMemorySegment(SHORTS, s1, o1 + at, ORDER);
            bits = (IntVector) row.convertShape(S2I, INTS, 0);
            sum = sum.add(bits.lanewise(LSHL, 16).reinterpretAsFloats());
            row = ShortVector.fromMemorySegment(SHORTS, s2, o2 + at, ORDER);
            bits = (IntVector) row.convertShape(S2I, INTS, 0);
            sum = sum.add(bits.lanewise(LSHL, 16).reinterpretAsFloats());
            row = ShortVector.fromMemorySegment(SHORTS, s3, o3 + at, ORDER);
            bits = (IntVector) row.convertShape(S2I, INTS, 0);
            sum = sum.add(bits.lanewise(LSHL, 16).reinterpretAsFloats());
            row = ShortVector.fromMemorySegment(SHORTS, s4, o4 + at, ORDER);
            bits = (IntVector) row.convertShape(S2I, INTS, 0);
            sum = sum.add(bits.lanewise(LSHL, 16).reinterpretAsFloats());
            row = ShortVector.fromMemorySegment(SHORTS, s5, o5 + at, ORDER);
            bits = (IntVector) row.convertShape(S2I, INTS, 0);
            sum = sum.add(bits.lanewise(LSHL, 16).reinterpretAsFloats());
            row = ShortVector.fromMemorySegment(SHORTS, s6, o6 + at, ORDER);
            bits = (IntVector) row.convertShape(S2I, INTS, 0);
            sum = sum.add(bits.lanewise(LSHL, 16).reinterpretAsFloats());
            row = ShortVector.fromMemorySegment(SHORTS, s7, o7 + at, ORDER);
            bits = (IntVector) row.convertShape(S2I, INTS, 0);
            sum = sum.add(bits.lanewise(LSHL, 16).reinterpretAsFloats());
            bits = sum.reinterpretAsInts();
            IntVector odd = bits.lanewise(LSHR, 16).and(1);
            IntVector rounded = bits.add(0x7fff).add(odd).lanewise(LSHR, 16);
            VectorMask<Integer> nan = sum.test(VectorOperators.IS_NAN).cast(INTS);
            ((ShortVector) rounded.blend(0x7fff, nan).convertShape(I2S, SHORTS, 0))
                    .intoMemorySegment(dst, offset + at, ORDER);
        }
        for (int i = whole; i < n; i++) {
            float sum = 0;
            for (int row = 0; row < GROUP_ROWS; row++) {
                sum += PlainRows.element(src[row], offsets[row] + 2L * i);
            }
            dst.set(PlainRows.SHORT, offset + 2L * i, Bf16.fromFloat(sum));
        }
    }

    static void storeBf16(float[] acc, MemorySegment dst, long offset, int n) {
        int whole = FLOATS.loopBound(n);
        for (int i = 0; i < whole; i += LANES) {
            FloatVector value = FloatVector.fromArray(FLOATS, acc, i);
            IntVector bits = value.reinterpretAsInts();
            IntVector odd = bits.lanewise(LSHR, 16).and(1);
            IntVector rounded = bits.add(0x7fff).add(odd).lanewise(LSHR, 16);
            VectorMask<Integer> nan = value.test(VectorOperators.IS_NAN).cast(INTS);
            ((ShortVector) rounded.blend(0x7fff, nan).convertShape(I2S, SHORTS, 0))
                    .intoMemorySegment(dst, offset + 2L * i, ORDER);
        }
        PlainRows.storeBf16(acc, dst, offset, whole, n);
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
        if (FLOATS.vectorBitSize() < 256) {
            // The bytes of a 128-bit vector of floats would need a 32-bit vector, which there is
            // not.
            PlainRows.castFp8(bf16, offset, fp8, fp8Offset, scales, scalesOffset, n, powerOfTwo);
            return;
        }
        for (int from = 0; from < n; from += GROUP) {
            float amax = PlainRows.clampAmax(largest(bf16, offset + 2L * from));
            float scale = PlainRows.scale(amax, powerOfTwo);
            float multiplier = PlainRows.multiplier(amax, scale, powerOfTwo);
            scales.set(FLOAT, scalesOffset + from / GROUP * 4L, scale);
            castGroup(bf16, offset + 2L * from, multiplier, fp8, fp8Offset + from);
        }
    }

    private static int largest(MemorySegment bf16, long offset) {
        ShortVector largest = ShortVector.zero(FULL_SHORTS);
        for (int i = 0; i < GROUP; i += FULL_SHORTS.length()) {
            ShortVector magnitude =
                    ShortVector.fromMemorySegment(FULL_SHORTS, bf16, offset + 2L * i, ORDER)
                            .and((short) 0x7fff);
            VectorMask<Short> nan = magnitude.compare(VectorOperators.GT, INFINITY);
            largest = largest.max(magnitude.blend((short) 0, nan));
        }
        return largest.reduceLanes(VectorOperators.MAX);
    }

    private static void castGroup(
            MemorySegment bf16, long offset, float multiplier, MemorySegment fp8, long fp8Offset) {
        for (int i = 0; i < GROUP; i += LANES) {
            ShortVector row = ShortVector.fromMemorySegment(SHORTS, bf16, offset + 2L * i, ORDER);
            IntVector wide = (IntVector) row.convertShape(S2I, INTS, 0);
            FloatVector value = wide.lanewise(LSHL, 16).reinterpretAsFloats().mul(multiplier);
            IntVector bits = value.reinterpretAsInts();
            IntVector sign = bits.lanewise(LSHR, 24).and(0x80);
            IntVector abs = bits.and(0x7fffffff);
            IntVector odd = abs.lanewise(LSHR, 20).and(1);
            IntVector normal =
                    abs.add((1 << 19) - 1).add(odd).lanewise(LSHR, 20).sub(120 << 3).min(0x7e);
            // Adding 2^14, whose last place is 2^-9, rounds a magnitude below 2^-6 to the multiples
            // of 2^-9 that are the subnormal codes.
            IntVector subnormal =
                    abs.reinterpretAsFloats()
                            .add(0x1p14f)
                            .reinterpretAsInts()
                            .sub(Float.floatToRawIntBits(0x1p14f));
            VectorMask<Integer> small =
                    abs.compare(VectorOperators.LT, Float.floatToRawIntBits(0x1p-6f));
            VectorMask<Integer> nan = abs.compare(VectorOperators.GT, 0x7f800000);
            IntVector codes = normal.blend(subnormal, small).or(sign).blend(0x7f, nan);
            ((ByteVector) codes.convertShape(I2B, BYTES, 0))
                    .intoMemorySegment(fp8, fp8Offset + i, ORDER);
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
        if (FLOATS.vectorBitSize() < 256) {
            PlainRows.addScaledFp8(acc, first, weight, src, codes, scales, n); // as in castFp8
            return;
        }
        for (int from = 0; from < n; from += GROUP) {
            float factor = weight * src.get(FLOAT, scales + from / GROUP * 4L);
            addGroup(acc, first + from, factor, src, codes + from);
        }
    }

    private static void addGroup(
            float[] acc, int first, float factor, MemorySegment src, long offset) {
        FloatVector factors = FloatVector.broadcast(FLOATS, factor);
        for (int i = 0; i < GROUP; i += LANES) {
            IntVector codes =
                    (IntVector)
                            ByteVector.fromMemorySegment(BYTES, src, offset + i, ORDER)
                                    .convertShape(B2I, INTS, 0);
            IntVector sign = codes.lanewise(LSHL, 24).and(Integer.MIN_VALUE);
            IntVector magnitude = codes.and(0x7f);
            // As the exponent and mantissa of a float that is 2^-120 as large; subnormals too.
            IntVector bits =
                    magnitude
                            .lanewise(LSHL, 20)
                            .reinterpretAsFloats()
                            .mul(0x1p120f)
                            .reinterpretAsInts();
            VectorMask<Integer> nan = magnitude.compare(VectorOperators.EQ, 0x7f);
            FloatVector values = bits.blend(0x7fc00000, nan).or(sign).reinterpretAsFloats();
            FloatVector sum = FloatVector.fromArray(FLOATS, acc, first + i);
            values.fma(factors, sum).intoArray(acc, first + i);
        }
    }
}
