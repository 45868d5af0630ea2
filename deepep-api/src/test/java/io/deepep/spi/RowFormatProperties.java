package io.deepep.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.deepep.DType;
import io.deepep.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

/** The parts of a row follow each other and fit. */
class RowFormatProperties {
    @Property(tries = 300)
    void partsFollowEachOther(
            @ForAll boolean fp8,
            @ForAll @IntRange(min = 1, max = 4096) int vectors,
            @ForAll @IntRange(min = 1, max = 32) int numTopk) {
        int hidden = 8 * vectors;
        RowFormat row = fp8 ? RowFormat.fp8(hidden) : RowFormat.bf16(hidden);
        assertThat(row.elementBytes()).isEqualTo(fp8 ? hidden : 2L * hidden);
        assertThat(row.numScales()).isEqualTo(fp8 ? hidden / 128 : 0);
        assertThat(row.dataBytes()).isEqualTo(row.elementBytes() + 4L * row.numScales());
        assertThat(row.strideBytes())
                .isBetween(row.dataBytes(), row.dataBytes() + 127)
                .isLessThanOrEqualTo(RowFormat.maxStrideBytes(hidden));
        assertThat(row.strideBytes() % Layout.LINE_BYTES).isZero();
        assertThat(row.selectionsOffset()).isBetween(row.dataBytes(), row.dataBytes() + 15);
        assertThat(row.selectionsOffset() % 16).isZero();
        assertThat(row.weightsOffset(numTopk)).isEqualTo(row.selectionsOffset() + 4L * numTopk + 4);
        long end = row.weightsOffset(numTopk) + 4L * numTopk;
        assertThat(row.strideBytes(numTopk)).isBetween(end, end + 127);
        assertThat(row.strideBytes(numTopk) % Layout.LINE_BYTES).isZero();
    }

    @Example
    void deepSeekRows() {
        assertThat(RowFormat.bf16(7168).strideBytes()).isEqualTo(14336);
        assertThat(RowFormat.fp8(7168).dataBytes()).isEqualTo(7168 + 224);
        assertThat(RowFormat.fp8(7168).strideBytes()).isEqualTo(7424);
    }

    /** Of {@code rows} rows, moved by some bytes against what the format says. */
    private static boolean isForm(
            int rows, long shift, long longer, long scalesShift, long scaleStride) {
        RowFormat format = RowFormat.fp8(256);
        long stride = format.strideBytes() + longer;
        MemorySegment memory = Arena.ofAuto().allocate(8 * stride, Layout.LINE_BYTES);
        long[] strides = {stride, 1};
        Tensor elements =
                Tensor.strided(
                        memory.asSlice(shift), DType.FP8_E4M3, new long[] {rows, 256}, strides);
        Tensor scales =
                Tensor.strided(
                        memory.asSlice(shift + format.elementBytes() + scalesShift),
                        DType.F32,
                        new long[] {rows, 2},
                        new long[] {stride / Float.BYTES, scaleStride});
        return format.isFormOf(elements, scales);
    }

    @Example
    void rowsLieAsTheFormatSaysOrNot() {
        assertThat(isForm(3, 0, 0, 0, 1)).isTrue();
        assertThat(isForm(0, 128, 0, 0, 1)).isTrue();
        assertThat(isForm(3, 16, 0, 0, 1)).as("not on a line").isFalse();
        assertThat(isForm(3, 0, 128, 0, 1)).as("too far apart").isFalse();
        assertThat(isForm(3, 0, 0, 4, 1)).as("scales elsewhere").isFalse();
        assertThat(isForm(3, 0, 0, 0, 2)).as("scales with gaps").isFalse();
        Tensor rows = Tensor.allocate(Arena.ofAuto(), DType.BF16, 3, 256);
        Tensor scales = Tensor.allocate(Arena.ofAuto(), DType.F32, 3, 2);
        assertThat(RowFormat.bf16(256).isFormOf(rows, scales)).isFalse();
    }

    @Example
    void onlyWhatTravelsHasAFormat() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new RowFormat(DType.F32, 8))
                .withMessageContaining("dtype=F32 is not a type of rows");
    }
}
