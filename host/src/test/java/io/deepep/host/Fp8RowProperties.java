package io.deepep.host;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Bf16;
import io.deepep.Fp8E4m3;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import net.jqwik.api.EdgeCasesMode;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

/** FP8 rows that are summed: their bits, and what {@link io.deepep.CombineFormat#FP8} promises. */
class Fp8RowProperties {
    private static final ValueLayout.OfShort SHORT = ValueLayout.JAVA_SHORT_UNALIGNED;
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;
    private static final int GROUP = Fp8E4m3.CHANNELS_PER_SCALE;

    @Property(tries = 200, edgeCases = EdgeCasesMode.NONE)
    void sumsHaveTheBitsOfTheirDefinition(
            @ForAll long seed,
            @ForAll @IntRange(min = 1, max = 4) int groups,
            @ForAll @IntRange(max = 9) int first,
            @ForAll @IntRange(max = 7) int skew) {
        Random random = new Random(seed);
        int n = GROUP * groups;
        float weight = (float) random.nextGaussian();
        float[] fast = new float[first + n];
        for (int i = 0; i < fast.length; i++) {
            fast[i] = (float) random.nextGaussian();
        }
        float[] plain = fast.clone();
        float[] expected = fast.clone();
        try (Arena arena = Arena.ofConfined()) {
            long codes = skew + 4L * groups;
            MemorySegment row = arena.allocate(codes + n);
            for (int group = 0; group < groups; group++) {
                float scale = (float) Math.scalb(random.nextGaussian(), random.nextInt(-100, 100));
                row.set(FLOAT, skew + 4L * group, scale);
            }
            for (int i = 0; i < n; i++) {
                byte code = (byte) (i < 256 && skew % 2 == 0 ? i : random.nextInt());
                row.set(ValueLayout.JAVA_BYTE, codes + i, code);
                float factor = weight * row.get(FLOAT, skew + 4L * (i / GROUP));
                expected[first + i] = Math.fma(Fp8E4m3.toFloat(code), factor, expected[first + i]);
            }
            RowMath.addScaledFp8(fast, first, weight, row, codes, skew, n);
            PlainRows.addScaledFp8(plain, first, weight, row, codes, skew, n);
        }
        for (int i = 0; i < expected.length; i++) {
            int bits = Float.floatToIntBits(expected[i]); // one pattern for every NaN
            assertThat(Float.floatToIntBits(fast[i])).as("element %d", i).isEqualTo(bits);
            assertThat(Float.floatToIntBits(plain[i])).as("element %d", i).isEqualTo(bits);
        }
    }

    @Property(tries = 300, edgeCases = EdgeCasesMode.NONE)
    void whatTravelsStaysWithinItsBound(@ForAll long seed, @ForAll @IntRange(max = 3) int kind) {
        Random random = new Random(seed);
        float[] row = new float[GROUP];
        double largest = 1e-4;
        int exponent = random.nextInt(-60, 60);
        for (int i = 0; i < row.length; i++) {
            double value =
                    switch (kind) {
                        case 0 -> random.nextGaussian();
                        case 1 -> Math.scalb(random.nextGaussian(), exponent);
                        case 2 -> Math.scalb(random.nextGaussian(), random.nextInt(-40, 40));
                        default -> random.nextInt(4) == 0 ? random.nextGaussian() : 0;
                    };
            row[i] = Bf16.toFloat(Bf16.fromFloat((float) value));
            largest = Math.max(largest, Math.abs(row[i]));
        }
        float[] arrived = travelled(row);
        for (int i = 0; i < row.length; i++) {
            double magnitude = Math.abs(row[i]);
            double bound = Math.max(magnitude / 16, largest / 458752) + magnitude * 0x1p-22;
            assertThat(Math.abs((double) arrived[i] - row[i]))
                    .as("channel %d: %s became %s", i, row[i], arrived[i])
                    .isLessThanOrEqualTo(bound);
        }
    }

    @Example
    void specialValues() {
        float[] row = new float[GROUP];
        assertThat(travelled(row)).as("zeros").containsOnly(0f);
        row[3] = Float.NaN;
        row[5] = 1;
        float[] withNan = travelled(row);
        assertThat(withNan[3]).isNaN();
        assertThat(withNan[5]).isEqualTo(1);
        assertThat(withNan[4]).isZero();
        row[7] = Float.NEGATIVE_INFINITY;
        float[] withInfinity = travelled(row);
        assertThat(withInfinity[3]).isNaN();
        assertThat(withInfinity[5]).as("lost beside an infinity").isZero();
        assertThat(withInfinity[7]).isBetween(-Float.MAX_VALUE, -3.4e38f);
    }

    private static float[] travelled(float[] row) {
        float[] sum = new float[GROUP];
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment bf16 = arena.allocate(2L * GROUP);
            for (int i = 0; i < GROUP; i++) {
                bf16.set(SHORT, 2L * i, Bf16.fromFloat(row[i]));
            }
            MemorySegment sent = arena.allocate(GROUP + 4L);
            RowMath.castFp8(bf16, 0, sent, 4, sent, 0, GROUP, false);
            RowMath.addScaledFp8(sum, 0, 1, sent, 4, 0, GROUP);
        }
        return sum;
    }
}
