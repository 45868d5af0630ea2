package io.deepep.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import io.deepep.Bf16;
import io.deepep.Fp8E4m3;
import io.deepep.testkit.Programs;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RowMathTest {
    private static final int GROUP = 128;

    @Test
    void everyBf16AndItsNeighboursRoundLikeTheScalar() {
        int n = 1 << 16;
        float[] values = new float[3 * n];
        for (int bits = 0; bits < n; bits++) {
            values[3 * bits] = Float.intBitsToFloat(bits << 16);
            values[3 * bits + 1] = Float.intBitsToFloat(bits << 16 | 0x8000);
            values[3 * bits + 2] = Float.intBitsToFloat(bits << 16 | 0x8001);
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment stored = arena.allocate(2L * values.length);
            RowMath.storeBf16(values, stored, 0, values.length);
            for (int i = 0; i < values.length; i++) {
                if (stored.getAtIndex(ValueLayout.JAVA_SHORT, i) != Bf16.fromFloat(values[i])) {
                    assertThat(stored.getAtIndex(ValueLayout.JAVA_SHORT, i))
                            .as("%s", values[i])
                            .isEqualTo(Bf16.fromFloat(values[i]));
                }
            }
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void infinitiesSaturateWithAFiniteScale(boolean powerOfTwo) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment row = arena.allocate(2 * GROUP, 128);
            row.setAtIndex(ValueLayout.JAVA_SHORT, 0, Bf16.fromFloat(Float.POSITIVE_INFINITY));
            row.setAtIndex(ValueLayout.JAVA_SHORT, 1, Bf16.fromFloat(Float.NEGATIVE_INFINITY));
            row.setAtIndex(ValueLayout.JAVA_SHORT, 2, Bf16.fromFloat(Float.NaN));
            MemorySegment codes = arena.allocate(GROUP);
            MemorySegment scales = arena.allocate(4, 4);
            RowMath.castFp8(row, 0, codes, 0, scales, 0, GROUP, powerOfTwo);
            assertThat(scales.get(ValueLayout.JAVA_FLOAT, 0)).isFinite().isPositive();
            assertThat(Fp8E4m3.toFloat(codes.get(ValueLayout.JAVA_BYTE, 0))).isEqualTo(448f);
            assertThat(Fp8E4m3.toFloat(codes.get(ValueLayout.JAVA_BYTE, 1))).isEqualTo(-448f);
            assertThat(codes.get(ValueLayout.JAVA_BYTE, 2)).isEqualTo((byte) 0x7f);
            assertThat(codes.get(ValueLayout.JAVA_BYTE, 3)).isEqualTo((byte) 0);
        }
    }

    @Test
    void rowsOutsideTheMemoryAreRefused() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment small = arena.allocate(2 * GROUP - 1);
            float[] acc = new float[GROUP];
            assertThatThrownBy(() -> RowMath.addScaledBf16(acc, 1, small, 0, GROUP))
                    .isInstanceOf(IndexOutOfBoundsException.class);
            assertThatThrownBy(() -> RowMath.storeBf16(acc, small, 0, GROUP))
                    .isInstanceOf(IndexOutOfBoundsException.class);
            assertThatThrownBy(() -> RowMath.storeBf16(new float[8], small, 0, GROUP))
                    .isInstanceOf(IndexOutOfBoundsException.class);
            assertThatThrownBy(
                            () ->
                                    RowMath.castFp8(
                                            small,
                                            0,
                                            arena.allocate(GROUP),
                                            0,
                                            arena.allocate(4),
                                            0,
                                            GROUP,
                                            false))
                    .isInstanceOf(IndexOutOfBoundsException.class);
        }
    }

    @Test
    void withoutTheVectorModuleThePlainLoopsServe() throws IOException, InterruptedException {
        String said = Programs.run(Programs.java(WithoutVectors.class, List.of())).requireSuccess();
        assertThat(said.strip()).isEqualTo("vectorized=false sum=3.5");
    }

    /** As in a caller that has grown too large for the compiler to inline more of our methods. */
    @Test
    void whereNothingIsInlinedNothingIsAllocated() throws IOException, InterruptedException {
        List<String> options =
                List.of(
                        "--add-modules=jdk.incubator.vector",
                        "-XX:CompileCommand=quiet",
                        "-XX:CompileCommand=dontinline,io.deepep.host.VectorRows::*");
        String said = Programs.run(Programs.java(NotInlined.class, options)).requireSuccess();
        assertThat(said.lines()).contains(NotInlined.CLEAN);
    }

    /** Run in a JVM of its own that lacks the Vector API. */
    static final class WithoutVectors {
        private WithoutVectors() {}

        public static void main(String[] args) {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment row = arena.allocate(16, 128);
                row.setAtIndex(ValueLayout.JAVA_SHORT, 7, Bf16.fromFloat(1.75f));
                float[] acc = new float[8];
                RowMath.addScaledBf16(acc, 1, row, 0, 8);
                RowMath.storeBf16(acc, row, 0, 8);
                RowSum twice = new RowSum(2, 8);
                twice.add(row, 0);
                twice.add(row, 0);
                twice.store(row, 0, 8);
                float sum = Bf16.toFloat(row.getAtIndex(ValueLayout.JAVA_SHORT, 7));
                System.out.println("vectorized=" + RowMath.isVectorized() + " sum=" + sum);
            }
        }
    }

    /**
     * Sums and casts until a round has left no garbage; before the compiler is done, vectors are
     * objects.
     */
    static final class NotInlined {
        static final String CLEAN = "a round without garbage";
        private static final int MOST_ROUNDS = 2000;
        private static final int CALLS = 1000;

        private NotInlined() {}

        public static void main(String[] args) {
            var threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
            try (Arena arena = Arena.ofShared()) {
                MemorySegment row = arena.allocate(2 * GROUP);
                MemorySegment codes = arena.allocate(GROUP + 4);
                float[] acc = new float[GROUP];
                MemorySegment[] rows = {row, row, row, row, row};
                long[] offsets = new long[rows.length];
                float[] weights = {1, 2, 3, 4, 5};
                RowSum sum = new RowSum(3, GROUP);
                long least = Long.MAX_VALUE;
                for (int round = 0; least >= CALLS && round < MOST_ROUNDS; round++) {
                    long before = threads.getCurrentThreadAllocatedBytes();
                    for (int i = 0; i < CALLS; i++) {
                        RowMath.castFp8(row, 0, codes, 0, codes, GROUP, GROUP, (i & 1) == 0);
                        RowMath.addScaledFp8(acc, 0, 1, codes, 0, GROUP, GROUP);
                        RowMath.addScaledBf16(acc, weights, rows, offsets, rows.length, GROUP);
                        RowMath.storeBf16(acc, row, 0, GROUP);
                        sum.clear();
                        sum.add(row, 0);
                        sum.store(row, 0, GROUP);
                    }
                    least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
                }
                System.out.println(least < CALLS ? CLEAN : least + " bytes in " + CALLS + " calls");
            }
        }
    }
}
