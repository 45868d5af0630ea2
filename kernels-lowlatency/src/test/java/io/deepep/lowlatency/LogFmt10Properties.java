package io.deepep.lowlatency;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Bf16;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.random.RandomGenerator;
import java.util.random.RandomGeneratorFactory;
import java.util.stream.DoubleStream;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.DoubleRange;
import net.jqwik.api.constraints.IntRange;

/** The block format against exact values: a BF16 and its decoded code are both exact as doubles. */
class LogFmt10Properties {
    @Property(tries = 300)
    void relativeErrorIsWithinHalfAStep(
            @ForAll long seed, @ForAll @DoubleRange(min = 0, max = 60) double octaves) {
        float[] values = random(seed, octaves);
        float[] decoded = roundTrip(values);
        double largest = magnitudes(values).max().orElse(0);
        double smallest = magnitudes(values).filter(m -> m > 0).min().orElse(1);
        double lowest = Math.max(smallest, largest / Math.pow(2, LogFmt10.MAX_RANGE));
        double step = (log2(largest) - log2(lowest)) / 510;
        // Half a step, and what base and step lose as floats: 2^-24 of at most 128 octaves, over
        // 510 steps.
        double bound = Math.pow(2, step / 2 + 1e-4) - 1;
        assertThat(bound).isLessThan(0.0221);
        for (int i = 0; i < values.length; i++) {
            double exact = values[i];
            if (Math.abs(exact) >= lowest) {
                assertThat(Math.abs(decoded[i] - exact))
                        .as("%s -> %s", exact, decoded[i])
                        .isLessThanOrEqualTo(bound * Math.abs(exact));
            } else {
                assertThat(Math.abs(decoded[i] - exact))
                        .as("%s -> %s", exact, decoded[i])
                        .isLessThanOrEqualTo(lowest * 0.51);
            }
        }
    }

    @Property(tries = 200)
    void signsZerosAndOrderAreKept(
            @ForAll long seed, @ForAll @DoubleRange(min = 0, max = 30) double octaves) {
        float[] values = random(seed, octaves);
        values[3] = 0f;
        values[77] = -0f;
        float[] decoded = roundTrip(values);
        for (int i = 0; i < values.length; i++) {
            assertThat(Math.signum(decoded[i])).isEqualTo(Math.signum(values[i]));
        }
        Integer[] order = new Integer[values.length];
        Arrays.setAll(order, i -> i);
        Arrays.sort(order, (a, b) -> Float.compare(values[a], values[b]));
        for (int i = 1; i < order.length; i++) {
            assertThat(decoded[order[i]]).isGreaterThanOrEqualTo(decoded[order[i - 1]]);
        }
    }

    @Property(tries = 50)
    void blocksOfOneMagnitudeLoseNothingButRounding(
            @ForAll @IntRange(min = -100, max = 100) int exponent) {
        double magnitude = Math.scalb(1.37, exponent);
        float[] values = new float[LogFmt10.CHANNELS];
        for (int i = 0; i < values.length; i++) {
            values[i] = round((float) (i % 2 == 0 ? magnitude : -magnitude));
        }
        float[] decoded = roundTrip(values);
        for (int i = 0; i < values.length; i++) {
            assertThat(Math.abs(decoded[i] / (double) values[i] - 1)).isLessThan(1e-5);
        }
    }

    @Example
    void blocksOfARowAreIndependent() {
        int numBlocks = 3;
        float[] row = new float[numBlocks * LogFmt10.CHANNELS];
        float[] expected = new float[row.length];
        for (int block = 0; block < numBlocks; block++) {
            float[] values = random(block, 5 + 10 * block);
            int at = block * LogFmt10.CHANNELS;
            System.arraycopy(values, 0, row, at, values.length);
            System.arraycopy(roundTrip(values), 0, expected, at, values.length);
        }
        assertThat(roundTrip(row)).isEqualTo(expected);
    }

    @Example
    void zerosStayZero() {
        assertThat(roundTrip(new float[LogFmt10.CHANNELS])).containsOnly(0f);
    }

    @Example
    void aBlockWithANonFiniteValueIsNanThroughout() {
        for (float bad :
                new float[] {Float.NaN, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY}) {
            float[] values = random(1, 3);
            values[9] = bad;
            assertThat(roundTrip(values)).containsOnly(Float.NaN);
        }
    }

    private static float[] random(long seed, double octaves) {
        RandomGenerator random = RandomGeneratorFactory.of("L64X128MixRandom").create(seed);
        float[] values = new float[LogFmt10.CHANNELS];
        for (int i = 0; i < values.length; i++) {
            double magnitude = Math.pow(2, (random.nextDouble() - 0.5) * octaves);
            values[i] = round((float) (random.nextBoolean() ? magnitude : -magnitude));
        }
        return values;
    }

    private static float round(float value) {
        return Bf16.toFloat(Bf16.fromFloat(value));
    }

    private static DoubleStream magnitudes(float[] values) {
        double[] all = new double[values.length];
        Arrays.setAll(all, i -> Math.abs(values[i]));
        return Arrays.stream(all);
    }

    private static double log2(double value) {
        return Math.log(value) / Math.log(2);
    }

    private static float[] roundTrip(float[] values) {
        try (Arena arena = Arena.ofConfined()) {
            long from = 6, at = 4; // rows may begin anywhere
            MemorySegment bf16 = arena.allocate(from + 2L * values.length);
            for (int i = 0; i < values.length; i++) {
                bf16.set(
                        ValueLayout.JAVA_SHORT_UNALIGNED, from + 2L * i, Bf16.fromFloat(values[i]));
            }
            MemorySegment row = arena.allocate(at + LogFmt10.rowBytes(values.length), 4);
            row.fill((byte) 0x5a);
            LogFmt10 codec = new LogFmt10();
            codec.encodeRow(bf16, from, row, at, values.length);
            float[] decoded = new float[values.length];
            codec.addScaledRow(decoded, 1f, row, at, values.length);
            return decoded;
        }
    }
}
