package io.deepep.lowlatency;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.SplittableRandom;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.DoubleRange;
import net.jqwik.api.constraints.IntRange;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The codec has the bits of its definition, in blocks and in what they decode to. */
class LogFmt10ReferenceProperties {
    private static final int INFINITY = 0x7f80;
    private static final float WEIGHT = 0.37f;

    /** Magnitudes from anywhere in a span of BF16 bits, subnormals included, and some zeros. */
    @Property(tries = 1000)
    void finiteBlocks(
            @ForAll long seed,
            @ForAll @IntRange(min = 1, max = INFINITY - 1) int lowest,
            @ForAll @IntRange(min = 1, max = INFINITY) int span,
            @ForAll @DoubleRange(min = 0, max = 0.5) double zeros) {
        SplittableRandom random = new SplittableRandom(seed);
        int bound = Math.min(lowest + span, INFINITY);
        short[] elements = new short[LogFmt10.CHANNELS];
        for (int i = 0; i < elements.length; i++) {
            int magnitude = random.nextDouble() < zeros ? 0 : random.nextInt(lowest, bound);
            elements[i] = (short) (magnitude | (random.nextBoolean() ? 0x8000 : 0));
        }
        requireSameBits(elements);
    }

    /** Any 128 bit patterns: nearly always some that are not finite. */
    @Property(tries = 50)
    void anyBlocks(@ForAll long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        short[] elements = new short[LogFmt10.CHANNELS];
        for (int i = 0; i < elements.length; i++) {
            elements[i] = (short) random.nextInt();
        }
        requireSameBits(elements);
    }

    @Example
    void everyMagnitudeAlone() {
        short[] elements = new short[LogFmt10.CHANNELS];
        for (int magnitude = 0; magnitude < INFINITY; magnitude++) {
            Arrays.fill(elements, (short) magnitude);
            elements[1] |= (short) 0x8000;
            requireSameBits(elements);
        }
    }

    /** The magnitudes around half of the smallest code: one side becomes zero. */
    @Property(tries = 200)
    void theEdgeOfZero(@ForAll @IntRange(min = 0x1180, max = INFINITY - 1) int largest) {
        short[] elements = new short[LogFmt10.CHANNELS];
        int half = largest - ((LogFmt10.MAX_RANGE + 1) << 7);
        for (int i = 0; i < elements.length; i++) {
            elements[i] = (short) (half - elements.length / 2 + i);
        }
        elements[0] = (short) largest;
        requireSameBits(elements);
    }

    /** Every code of any base and step. */
    @Property(tries = 500)
    void everyCode(
            @ForAll @DoubleRange(min = -133, max = 127) double base,
            @ForAll @DoubleRange(min = 0, max = 32) double octaves) {
        requireSameValues((float) base, (float) (octaves / 510));
    }

    /**
     * Codes whose power lies so close between two floats that a product rounds to the wrong one.
     */
    @ParameterizedTest
    @CsvSource({
        "49.31099, 0.0228001, 118",
        "1.2766656, 0.015898539, 405",
        "61.3084, 8.716874E-6, 53",
        "-17.868616, 0.03877055, 222"
    })
    void productsInDoubt(float base, float step, int code) {
        int[] codes = new int[LogFmt10.CHANNELS];
        Arrays.fill(codes, code);
        requireSameValues(new LogFmt10Reference(base, step, codes));
    }

    private static void requireSameValues(float base, float step) {
        for (int first = 0; first < 1024; first += LogFmt10.CHANNELS) {
            int[] codes = new int[LogFmt10.CHANNELS];
            for (int i = 0; i < codes.length; i++) {
                codes[i] = first + i;
            }
            requireSameValues(new LogFmt10Reference(base, step, codes));
        }
    }

    private static void requireSameBits(short[] elements) {
        LogFmt10Reference block = LogFmt10Reference.encode(elements);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment encoded = arena.allocate(LogFmt10.BLOCK_BYTES);
            encoded.fill((byte) 0x5a);
            new LogFmt10()
                    .encodeRow(MemorySegment.ofArray(elements), 0, encoded, 0, elements.length);
            assertThat(encoded.mismatch(written(arena, block)))
                    .as("first byte that differs for %s", Arrays.toString(elements))
                    .isEqualTo(-1);
        }
        requireSameValues(block);
    }

    private static void requireSameValues(LogFmt10Reference block) {
        try (Arena arena = Arena.ofConfined()) {
            float[] sums = new float[LogFmt10.CHANNELS];
            Arrays.fill(sums, -0f);
            float[] expected = sums.clone();
            new LogFmt10().addScaledRow(sums, WEIGHT, written(arena, block), 0, sums.length);
            for (int i = 0; i < expected.length; i++) {
                expected[i] += WEIGHT * block.value(i);
            }
            // Compares bits: zeros of different signs differ, NaNs are the same.
            assertThat(sums).isEqualTo(expected);
        }
    }

    private static MemorySegment written(Arena arena, LogFmt10Reference block) {
        MemorySegment memory = arena.allocate(LogFmt10.BLOCK_BYTES, 4);
        memory.set(ValueLayout.JAVA_FLOAT, 0, block.base);
        memory.set(ValueLayout.JAVA_FLOAT, 4, block.step);
        for (int i = 0; i < LogFmt10.CHANNELS; i++) {
            for (int bit = 0; bit < 10; bit++) {
                int at = 10 * i + bit;
                int set = block.codes[i] >> bit & 1;
                long place = 8L + at / 8;
                byte old = memory.get(ValueLayout.JAVA_BYTE, place);
                memory.set(ValueLayout.JAVA_BYTE, place, (byte) (old | set << at % 8));
            }
        }
        return memory;
    }
}
