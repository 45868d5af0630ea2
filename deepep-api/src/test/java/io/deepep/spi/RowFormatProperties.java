package io.deepep.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.deepep.DType;
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

    @Example
    void onlyWhatTravelsHasAFormat() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new RowFormat(DType.F32, 8))
                .withMessageContaining("dtype=F32 is not a type of rows");
    }
}
