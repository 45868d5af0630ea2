package io.deepep.normal.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.Fp8E4m3;
import io.deepep.normal.cuda.kernels.KernelConstants;
import io.deepep.spi.Layout;
import io.deepep.spi.RowFormat;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

/**
 * Chunks fit the threads and the shared memory of a block, and are no smaller than they must be.
 */
class CombineShapeProperties {
    private static final int DATA_CENTRE = 227 << 10;
    private static final int OTHERS = 99 << 10;
    private static final int SLOTS = KernelConstants.STAGE_WARPS * KernelConstants.STAGE_DEPTH;

    @Property
    void chunksFit(
            @ForAll @IntRange(min = 1, max = 256) int groups,
            @ForAll boolean fp8,
            @ForAll @IntRange(min = 48 << 10, max = DATA_CENTRE) int room) {
        int elementBytes = groups * Fp8E4m3.CHANNELS_PER_SCALE * (fp8 ? 1 : 2);
        int chunk = CombineShape.chunkBytes(elementBytes, fp8, room);
        assertThat(chunk % KernelConstants.VECTOR_BYTES).isZero();
        if (fp8) {
            long scaleBytes = RowFormat.fp8(chunk).scaleBytes();
            assertThat(scaleBytes % KernelConstants.VECTOR_BYTES).as("scales").isZero();
        } else if (elementBytes > 2048) {
            assertThat(chunk % Layout.LINE_BYTES).as("whole lines").isZero();
        }
        int perConsumer = KernelConstants.VECTOR_BYTES * (fp8 ? 1 : KernelConstants.VECTORS);
        assertThat(chunk).isLessThanOrEqualTo(KernelConstants.MAX_CONSUMERS * perConsumer);
        long slot = fp8 ? RowFormat.fp8(chunk).strideBytes() : chunk;
        assertThat(SLOTS * slot).isLessThanOrEqualTo(room);
    }

    @Example
    void fewerBytesWhereThereIsLessRoom() {
        assertThat(CombineShape.chunkBytes(2 * 7168, false, DATA_CENTRE)).isEqualTo(2 * 7168);
        assertThat(CombineShape.chunkBytes(2 * 7168, false, OTHERS)).isEqualTo(7168);
        assertThat(CombineShape.chunkBytes(2 * 9216, false, DATA_CENTRE)).isEqualTo(9216);
        assertThat(CombineShape.chunkBytes(2 * 9216, false, OTHERS)).isEqualTo(6144);
        assertThat(CombineShape.chunkBytes(7168, true, OTHERS)).isEqualTo(7168);
    }
}
