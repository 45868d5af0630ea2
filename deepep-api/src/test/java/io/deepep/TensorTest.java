package io.deepep;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class TensorTest {
    private static MemorySegment memory(long bytes) {
        return Arena.ofAuto().allocate(bytes, 8);
    }

    @Test
    void contiguousByDefault() {
        Tensor tensor = Tensor.allocate(Arena.ofAuto(), DType.BF16, 2, 3, 4);
        assertThat(tensor.strides()).containsExactly(12, 4, 1);
        assertThat(tensor.isContiguous()).isTrue();
        assertThat(tensor.numElements()).isEqualTo(24);
        assertThat(tensor.rank()).isEqualTo(3);
        assertThat(tensor.address() % 128).isZero();
        assertThat(tensor.toString()).isEqualTo("BF16[2, 3, 4] on host");
        assertThat(tensor.offsetBytes(1, 2, 3)).isEqualTo(2 * 23);
    }

    @Test
    void memoryMustSuffice() {
        assertThatThrownBy(() -> Tensor.of(memory(15), DType.F32, 2, 2))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("needs 16 bytes, but the memory has 15");
        assertThatThrownBy(
                        () ->
                                Tensor.strided(
                                        memory(32),
                                        DType.F32,
                                        new long[] {2, 2},
                                        new long[] {8, 1}))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("needs 40 bytes, but the memory has 32");
        Tensor padded = Tensor.strided(memory(40), DType.F32, new long[] {2, 2}, new long[] {8, 1});
        assertThat(padded.isContiguous()).isFalse();
    }

    @Test
    void refusesWhatCannotBe() {
        MemorySegment memory = memory(64);
        assertThatThrownBy(() -> Tensor.of(memory, DType.F32, -1))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("negative");
        assertThatThrownBy(() -> Tensor.strided(memory, DType.F32, new long[] {2}, new long[] {-1}))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("negative");
        assertThatThrownBy(
                        () -> Tensor.strided(memory, DType.F32, new long[] {2}, new long[] {1, 1}))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("differ in length");
        assertThatThrownBy(() -> Tensor.of(MemorySegment.ofArray(new int[4]), DType.I32, 4))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("Java heap");
        assertThatThrownBy(() -> Tensor.of(memory, DType.I64, Long.MAX_VALUE, 2))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("elements, which no memory can hold");
        assertThatThrownBy(() -> Tensor.allocate(Arena.global(), DType.I64, 1L << 60))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("elements, which no memory can hold");
        assertThatThrownBy(() -> Tensor.of(null, DType.I64, 1))
                .isInstanceOf(NullPointerException.class);
        assertThatThrownBy(() -> Tensor.of(memory, null, 1))
                .isInstanceOf(NullPointerException.class);
    }

    /** No arithmetic on what the caller gives may wrap around, whatever the element's size. */
    @ParameterizedTest
    @EnumSource
    void sizesThatOverflowAreRefused(DType dtype) {
        MemorySegment memory = memory(64);
        long huge = Long.MAX_VALUE;
        long[][][] shapesAndStrides = {
            {{2}, {huge}},
            {{3}, {huge / 2}},
            {{2, 2}, {huge, 1}},
            {{2, 2}, {huge - 1, 1}},
            {{2, 2}, {huge / 2 + 1, huge / 2}},
            {{3, 3, 3}, {huge / 2, huge / 2, huge / 2}},
            {{9}, {1L << 60}},
            {{2}, {1L << 62}},
            {{1 << 29, 1 << 30}, {1L << 34, 1}},
        };
        for (long[][] both : shapesAndStrides) {
            assertThatThrownBy(() -> Tensor.strided(memory, dtype, both[0], both[1]))
                    .as("%s", Arrays.deepToString(both))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("bytes, but the memory has 64");
        }
        long[][] shapes = {
            {huge}, {1L << 62, 2}, {0, huge}, {huge, 0}, {0, 1L << 31, 1L << 31}, {huge, huge, huge}
        };
        for (long[] shape : shapes) {
            assertThatThrownBy(() -> Tensor.of(memory, dtype, shape))
                    .as("%s", Arrays.toString(shape))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("elements, which no memory can hold");
            assertThatThrownBy(() -> Tensor.allocate(Arena.ofAuto(), dtype, shape))
                    .isInstanceOf(IllegalArgumentException.class);
        }
    }

    @Test
    void extentIsFromTheFirstElementToTheLast() {
        assertThat(Tensor.of(memory(64), DType.F32, 4, 2).extentBytes()).isEqualTo(32);
        assertThat(Tensor.of(memory(64), DType.F32, 0, 2).extentBytes()).isZero();
        Tensor gaps = Tensor.strided(memory(64), DType.BF16, new long[] {3, 2}, new long[] {8, 1});
        assertThat(gaps.extentBytes()).isEqualTo(2 * (2 * 8 + 2));
        Tensor repeated =
                Tensor.strided(memory(64), DType.BF16, new long[] {1000, 2}, new long[] {0, 1});
        assertThat(repeated.extentBytes()).isEqualTo(4);
    }

    @Test
    void indicesAreChecked() {
        Tensor tensor = Tensor.allocate(Arena.ofAuto(), DType.I32, 2, 3);
        assertThatThrownBy(() -> tensor.getLong(2, 0))
                .isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> tensor.getLong(0, -1))
                .isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> tensor.getLong(0)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> tensor.slice(1, 2, 2))
                .isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> tensor.select(0, 2)).isInstanceOf(IndexOutOfBoundsException.class);
    }

    @Test
    void dimensionsAreChecked() {
        Tensor tensor = Tensor.allocate(Arena.ofAuto(), DType.I32, 2, 3);
        for (int dim : new int[] {-1, 2}) {
            for (ThrowingCallable call :
                    List.<ThrowingCallable>of(
                            () -> tensor.size(dim),
                            () -> tensor.stride(dim),
                            () -> tensor.slice(dim, 0, 1),
                            () -> tensor.select(dim, 0))) {
                assertThatThrownBy(call)
                        .isInstanceOf(IndexOutOfBoundsException.class)
                        .hasMessage("dim=" + dim + " is not one of I32[2, 3] on host");
            }
        }
    }

    @Test
    void freedMemoryIsNamed() {
        Tensor tensor;
        try (Arena brief = Arena.ofShared()) {
            tensor = Tensor.allocate(brief, DType.BF16, 2, 3);
        }
        for (ThrowingCallable call :
                List.<ThrowingCallable>of(
                        () -> tensor.getFloat(0, 0),
                        () -> tensor.setFloat(1, 0, 0),
                        () -> tensor.getLong(0, 0),
                        () -> tensor.setLong(1, 0, 0),
                        () -> tensor.getFloats(0))) {
            assertThatThrownBy(call)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("the memory of BF16[2, 3] on host is freed");
        }
    }

    @Test
    void shapesAreCopies() {
        long[] shape = {2, 2};
        Tensor tensor = Tensor.of(memory(16), DType.I32, shape);
        shape[0] = 9;
        tensor.shape()[0] = 9;
        tensor.strides()[0] = 9;
        assertThat(tensor.shape()).containsExactly(2, 2);
        assertThat(tensor.strides()).containsExactly(2, 1);
    }

    /** A slice and a selection see the elements that the whole has there, whatever the strides. */
    @Property(tries = 200)
    void viewsSeeTheSameElements(
            @ForAll @IntRange(min = 1, max = 5) int rows,
            @ForAll @IntRange(min = 1, max = 5) int columns,
            @ForAll @IntRange(max = 3) int gap,
            @ForAll boolean columnMajor,
            @ForAll long seed) {
        long[] strides = columnMajor ? new long[] {1, rows + gap} : new long[] {columns + gap, 1};
        Tensor whole =
                Tensor.strided(memory(8L * 5 * 8), DType.I64, new long[] {rows, columns}, strides);
        for (int i = 0; i < rows; i++) {
            for (int j = 0; j < columns; j++) {
                whole.setLong(100 * i + j, i, j);
            }
        }
        SplittableRandom random = new SplittableRandom(seed);
        int from = random.nextInt(columns);
        int length = random.nextInt(columns - from + 1);
        int row = random.nextInt(rows);
        Tensor slice = whole.slice(1, from, length);
        assertThat(slice.shape()).containsExactly(rows, length);
        Tensor selected = slice.select(0, row);
        assertThat(selected.shape()).containsExactly(length);
        for (int j = 0; j < length; j++) {
            assertThat(slice.getLong(row, j)).isEqualTo(100 * row + from + j);
            assertThat(selected.getLong(j)).isEqualTo(100 * row + from + j);
        }
        Tensor column = whole.select(1, from);
        assertThat(column.shape()).containsExactly(rows);
        for (int i = 0; i < rows; i++) {
            assertThat(column.getLong(i)).isEqualTo(100 * i + from);
        }
    }

    /** Of device memory nobody else notices an extent that has overflowed. */
    @Test
    void extentsAreExactUpToTheLargest() {
        long most = Long.MAX_VALUE / Long.BYTES;
        long[] shape = {2, 3};
        assertThat(TensorShapes.numElements(new long[] {most})).isEqualTo(most);
        assertThat(TensorShapes.extentBytes(DType.I64, shape, new long[] {most - 7, 3}))
                .isEqualTo(Long.BYTES * most);
        assertThat(TensorShapes.extentBytes(DType.BOOL, shape, new long[] {most - 6, 3}))
                .isEqualTo(Long.MAX_VALUE);
    }

    @Test
    void emptyTensorsNeedNoMemory() {
        Tensor none = Tensor.allocate(Arena.ofAuto(), DType.BF16, 0, 128);
        assertThat(none.numElements()).isZero();
        assertThat(none.slice(0, 0, 0).shape()).containsExactly(0, 128);
        Tensor rows = Tensor.allocate(Arena.ofAuto(), DType.BF16, 2, 4);
        assertThat(rows.slice(0, 2, 0).numElements()).isZero();
    }

    @ParameterizedTest
    @EnumSource
    void smallIntegersAreExactInEveryType(DType dtype) {
        Tensor tensor = Tensor.allocate(Arena.ofAuto(), dtype, 3);
        tensor.setFloat(1, 1);
        assertThat(tensor.getFloat(1)).isEqualTo(1f);
        assertThat(tensor.getFloat(0)).isEqualTo(0f);
        tensor.setLong(tensor.getLong(1), 2);
        assertThat(tensor.getFloat(2)).isEqualTo(1f);
    }

    @Test
    void rawBitsAreZeroExtended() {
        Tensor f32 = Tensor.allocate(Arena.ofAuto(), DType.F32, 1);
        f32.setFloat(-1f, 0);
        assertThat(f32.getLong(0)).isEqualTo(0xbf800000L);
        Tensor bf16 = Tensor.allocate(Arena.ofAuto(), DType.BF16, 1);
        bf16.setFloat(-1f, 0);
        assertThat(bf16.getLong(0)).isEqualTo(0xbf80L);
        Tensor fp8 = Tensor.allocate(Arena.ofAuto(), DType.FP8_E4M3, 1);
        fp8.setFloat(-1f, 0);
        assertThat(fp8.getLong(0)).isEqualTo(0xb8L);
        Tensor i32 = Tensor.allocate(Arena.ofAuto(), DType.I32, 1);
        i32.setLong(-1, 0);
        assertThat(i32.getLong(0)).isEqualTo(-1);
    }

    @Test
    void deviceMemoryIsNotReadable() {
        Tensor tensor =
                Tensor.onDevice(
                        Device.cuda(1), 4096, 64, DType.F32, new long[] {4, 4}, new long[] {4, 1});
        assertThat(tensor.device()).isEqualTo(Device.cuda(1));
        assertThat(tensor.slice(0, 1, 1).address()).isEqualTo(4096 + 16);
        assertThatThrownBy(tensor::segment)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("cuda:1");
        assertThatThrownBy(() -> tensor.getFloat(0, 0)).isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(
                        () ->
                                Tensor.onDevice(
                                        Device.host(),
                                        4096,
                                        64,
                                        DType.F32,
                                        new long[] {4},
                                        new long[] {1}))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(
                        () ->
                                Tensor.onDevice(
                                        Device.cuda(0),
                                        4096,
                                        60,
                                        DType.F32,
                                        new long[] {4, 4},
                                        new long[] {4, 1}))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("needs 64 bytes, but the memory has 60");
    }

    @Test
    void rowsAsFloats() {
        Tensor tensor = Tensor.allocate(Arena.ofAuto(), DType.BF16, 2, 3, 4);
        tensor.setFloats(new float[] {1, -2, 0.5f, 3}, 1, 2);
        assertThat(tensor.getFloats(1, 2)).containsExactly(1, -2, 0.5f, 3);
        assertThat(tensor.getFloats(1, 1)).containsOnly(0);
        assertThat(tensor.select(0, 1).slice(1, 1, 2).getFloats(2)).containsExactly(-2, 0.5f);
        assertThatThrownBy(() -> tensor.setFloats(new float[3], 1, 2))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(
                        "3 values are not a row of 4 elements of the tensor BF16[2, 3, 4] on host");
        assertThatThrownBy(() -> tensor.getFloats(1))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("has 2 dimensions");
        assertThatThrownBy(() -> tensor.getFloats(1, 3))
                .isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> tensor.select(0, 0).select(0, 0).select(0, 0).getFloats())
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(
                        "BF16[] on host has no rows that fit an array: use getFloat or setFloat");
        Tensor wide =
                Tensor.strided(tensor.segment(), DType.BF16, new long[] {1L << 31}, new long[] {0});
        assertThatThrownBy(wide::getFloats)
                .hasMessageStartingWith("BF16[2147483648] strides [0] on host has no rows");
    }

    @Test
    void integersTakeTheNearestNumberTheyHave() {
        for (DType dtype : new DType[] {DType.I32, DType.I64}) {
            Tensor tensor = Tensor.allocate(Arena.ofAuto(), dtype, 3);
            tensor.setFloat(-1.9f, 0);
            tensor.setFloat(1e20f, 1);
            tensor.setFloat(-1e20f, 2);
            boolean narrow = dtype == DType.I32;
            assertThat(tensor.getLong(0)).isEqualTo(-1);
            assertThat(tensor.getLong(1)).isEqualTo(narrow ? Integer.MAX_VALUE : Long.MAX_VALUE);
            assertThat(tensor.getLong(2)).isEqualTo(narrow ? Integer.MIN_VALUE : Long.MIN_VALUE);
        }
    }
}
