package io.deepep.host;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Bf16;
import io.deepep.DType;
import io.deepep.Fp8E4m3;
import io.deepep.Tensor;
import io.deepep.Ue8m0;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import net.jqwik.api.EdgeCasesMode;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

/** Vectorised rows and plain rows against the scalar definitions, bit by bit. */
class RowMathProperties {
    private static final ValueLayout.OfShort SHORT = ValueLayout.JAVA_SHORT_UNALIGNED;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
    private static final int GUARD = 64;

    /** Values that rounding and overflow treat in a special way. */
    private static final float[] EDGES = {
        0f,
        -0f,
        Float.NaN,
        Float.intBitsToFloat(0xffc00001),
        Float.intBitsToFloat(0x7f800001),
        Float.POSITIVE_INFINITY,
        Float.NEGATIVE_INFINITY,
        Float.MIN_VALUE,
        -Float.MIN_VALUE,
        Float.MIN_NORMAL,
        Float.MAX_VALUE,
        -Float.MAX_VALUE,
        Float.intBitsToFloat(0x7f7f7fff),
        Float.intBitsToFloat(0x7f7f8000),
        448f,
        -464f,
        1e-4f,
        0x1p-6f,
        0x1p-9f,
        0x1p-10f,
        1f,
        -1f
    };

    @Example
    void theFasterImplementationIsTested() {
        assertThat(RowMath.isVectorized())
                .as("surefire starts the JVM with --add-modules jdk.incubator.vector")
                .isTrue();
    }

    @Property(tries = 300, edgeCases = EdgeCasesMode.NONE)
    void sumsOfRowsHaveTheBitsOfTheirDefinition(
            @ForAll long seed,
            @ForAll @IntRange(max = 40) int eighths,
            @ForAll @IntRange(max = 9) int rows,
            @ForAll @IntRange(max = 7) int skew) {
        Random random = new Random(seed);
        int n = 8 * eighths;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment[] src = new MemorySegment[rows];
            long[] offsets = new long[rows];
            float[] weights = new float[rows];
            float[] initial = floats(random, n + 1);
            float[] expected = initial.clone();
            for (int row = 0; row < rows; row++) {
                offsets[row] = Math.floorMod(skew + row, 8);
                src[row] = bf16(arena, random, offsets[row], n);
                weights[row] = value(random);
                for (int i = 0; i < n; i++) {
                    float element = Bf16.toFloat(src[row].get(SHORT, offsets[row] + 2L * i));
                    float product = weights[row] * element;
                    expected[i] += product;
                }
            }
            assertWeightedSums(initial, weights, src, offsets, n, expected);
        }
    }

    private static void assertWeightedSums(
            float[] initial,
            float[] weights,
            MemorySegment[] src,
            long[] offsets,
            int n,
            float[] expected) {
        float[] together = initial.clone();
        RowMath.addScaledBf16(together, weights, src, offsets, src.length, n);
        assertSameValues(together, expected);
        float[] plain = initial.clone();
        float[] oneByOne = initial.clone();
        for (int row = 0; row < src.length; row++) {
            PlainRows.addScaledBf16(plain, weights[row], src[row], offsets[row], 0, n);
            RowMath.addScaledBf16(oneByOne, weights[row], src[row], offsets[row], n);
        }
        assertSameValues(plain, expected);
        assertSameValues(oneByOne, expected);
    }

    @Property(tries = 300, edgeCases = EdgeCasesMode.NONE)
    void sumsThatAreStoredHaveTheBitsOfTheirDefinition(
            @ForAll long seed,
            @ForAll @IntRange(max = 40) int eighths,
            @ForAll @IntRange(max = 20) int rows,
            @ForAll @IntRange(max = 7) int skew) {
        Random random = new Random(seed);
        int n = 8 * eighths;
        RowSum sum = new RowSum(20, n);
        float[] expected = new float[n + 1];
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment before = bf16(arena, random, 7, n);
            for (int row = 0; row < 20; row++) {
                sum.add(before, 7);
            }
            sum.store(before, 7, n);
            sum.clear();
            for (int row = 0; row < rows; row++) {
                long offset = Math.floorMod(skew + row, 8);
                MemorySegment src = bf16(arena, random, offset, n);
                sum.add(src, offset);
                for (int i = 0; i < n; i++) {
                    expected[i] += Bf16.toFloat(src.get(SHORT, offset + 2L * i));
                }
            }
            MemorySegment stored = arena.allocate(2L * n + 2 * GUARD).fill((byte) 0x5a);
            MemorySegment defined = arena.allocate(2L * n + 2 * GUARD).fill((byte) 0x5a);
            for (int i = 0; i < n; i++) {
                defined.set(SHORT, skew + 2L * i, Bf16.fromFloat(expected[i]));
            }
            sum.store(stored, skew, n);
            assertThat(stored.mismatch(defined)).isEqualTo(-1);
        }
    }

    @Property(tries = 300, edgeCases = EdgeCasesMode.NONE)
    void storesRoundLikeTheScalarAndTouchNothingElse(
            @ForAll long seed,
            @ForAll @IntRange(max = 40) int eighths,
            @ForAll @IntRange(max = 7) int skew) {
        Random random = new Random(seed);
        int n = 8 * eighths;
        float[] row = floats(random, n + 1);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment fast = arena.allocate(2L * n + 2 * GUARD).fill((byte) 0x5a);
            MemorySegment plain = arena.allocate(2L * n + 2 * GUARD).fill((byte) 0x5a);
            MemorySegment expected = arena.allocate(2L * n + 2 * GUARD).fill((byte) 0x5a);
            for (int i = 0; i < n; i++) {
                expected.set(SHORT, skew + 2L * i, Bf16.fromFloat(row[i]));
            }
            RowMath.storeBf16(row, fast, skew, n);
            PlainRows.storeBf16(row, plain, skew, 0, n);
            assertThat(fast.mismatch(expected)).isEqualTo(-1);
            assertThat(plain.mismatch(expected)).isEqualTo(-1);
        }
    }

    @Property(tries = 300, edgeCases = EdgeCasesMode.NONE)
    void castsHaveTheBitsOfTheirDefinition(
            @ForAll long seed,
            @ForAll @IntRange(max = 5) int groups,
            @ForAll @IntRange(max = 7) int skew,
            @ForAll boolean powerOfTwo) {
        Random random = new Random(seed);
        int n = 128 * groups;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment row = bf16(arena, random, skew, n);
            Cast fast = new Cast(arena, n);
            Cast plain = new Cast(arena, n);
            Cast expected = new Cast(arena, n);
            define(row, skew, expected, n, powerOfTwo);
            RowMath.castFp8(row, skew, fast.bytes, 3, fast.scales, 5, n, powerOfTwo);
            PlainRows.castFp8(row, skew, plain.bytes, 3, plain.scales, 5, n, powerOfTwo);
            fast.assertEqualTo(expected);
            plain.assertEqualTo(expected);
            if (!powerOfTwo) {
                Cast byTensors = new Cast(arena, n);
                Fp8E4m3.quantize(
                        Tensor.of(row.asSlice(skew, 2L * n), DType.BF16, 1, n),
                        Tensor.of(byTensors.bytes.asSlice(3, n), DType.FP8_E4M3, 1, n),
                        Tensor.of(byTensors.scales.asSlice(5, n / 32), DType.F32, 1, n / 128));
                byTensors.assertEqualTo(expected);
            }
        }
    }

    /** The whole output with guards around it: codes from byte 3, scales from byte 5. */
    private record Cast(MemorySegment bytes, MemorySegment scales) {
        Cast(Arena arena, int n) {
            this(
                    arena.allocate(n + GUARD).fill((byte) 0x5a),
                    arena.allocate(n / 32 + GUARD).fill((byte) 0x5a));
        }

        void assertEqualTo(Cast expected) {
            assertThat(bytes.mismatch(expected.bytes)).isEqualTo(-1);
            assertThat(scales.mismatch(expected.scales)).isEqualTo(-1);
        }
    }

    private static void define(
            MemorySegment row, long offset, Cast out, int n, boolean powerOfTwo) {
        for (int group = 0; group < n / 128; group++) {
            float amax = 1e-4f;
            for (int i = 128 * group; i < 128 * group + 128; i++) {
                float magnitude = Math.abs(Bf16.toFloat(row.get(SHORT, offset + 2L * i)));
                amax =
                        Float.isNaN(magnitude)
                                ? amax
                                : Math.max(amax, Math.min(magnitude, Float.MAX_VALUE));
            }
            float scale = powerOfTwo ? Ue8m0.ceilPowerOfTwo(amax / 448f) : amax * (1f / 448f);
            float multiplier = powerOfTwo ? 1f / scale : 448f / amax;
            out.scales.set(INT, 5 + 4L * group, Float.floatToRawIntBits(scale));
            for (int i = 128 * group; i < 128 * group + 128; i++) {
                float value = Bf16.toFloat(row.get(SHORT, offset + 2L * i));
                out.bytes.set(ValueLayout.JAVA_BYTE, 3L + i, Fp8E4m3.fromFloat(value * multiplier));
            }
        }
    }

    /**
     * Which NaN a sum of NaNs is, Java leaves open (and {@link RowMath#storeBf16} makes them
     * equal); everything else is compared by its bits.
     */
    private static void assertSameValues(float[] actual, float[] expected) {
        for (int i = 0; i < expected.length; i++) {
            assertThat(Float.floatToIntBits(actual[i]))
                    .as("element %d of %d", i, expected.length)
                    .isEqualTo(Float.floatToIntBits(expected[i]));
        }
    }

    private static MemorySegment bf16(Arena arena, Random random, long offset, int n) {
        MemorySegment row = arena.allocate(2L * n + GUARD);
        // Some rows are tame, so that sums and casts do not drown in infinities.
        boolean tame = random.nextBoolean();
        for (int i = 0; i < n; i++) {
            float value = tame ? (float) random.nextGaussian() : value(random);
            row.set(
                    SHORT,
                    offset + 2L * i,
                    tame || random.nextBoolean()
                            ? Bf16.fromFloat(value)
                            : (short) random.nextInt());
        }
        return row;
    }

    private static float[] floats(Random random, int n) {
        float[] values = new float[n];
        for (int i = 0; i < n; i++) {
            values[i] = value(random);
        }
        return values;
    }

    private static float value(Random random) {
        return switch (random.nextInt(4)) {
            case 0 -> EDGES[random.nextInt(EDGES.length)];
            case 1 -> Float.intBitsToFloat(random.nextInt());
            default -> (float) random.nextGaussian();
        };
    }
}
