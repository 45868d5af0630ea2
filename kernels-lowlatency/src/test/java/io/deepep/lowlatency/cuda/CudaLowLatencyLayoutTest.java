package io.deepep.lowlatency.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.EpTopology;
import io.deepep.LowLatencyLimits;
import org.junit.jupiter.api.Test;

class CudaLowLatencyLayoutTest {
    private static final long MAX_BYTES = 400_000_000;

    /** The field's standard shape on one node of eight: 128 tokens, 256 experts. */
    @Test
    void symmetricMemoryOfTheStandardShape() {
        LowLatencyLimits limits = new LowLatencyLimits(128, 7168, 256, 8);
        CudaLowLatencyLayout layout = CudaLowLatencyLayout.of(limits, new EpTopology(0, 8, 8));
        assertThat(layout.layout().sizeBytes()).isLessThan(MAX_BYTES);
    }
}
