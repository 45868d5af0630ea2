package io.deepep;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.error.DeepEpUnavailableException;
import org.junit.jupiter.api.Test;

/** What the API alone says of CUDA's handles; suites on GPUs use streams made so. */
class CudaHandlesTest {
    @Test
    void theHostHasNoCudaHandles() {
        assertThatThrownBy(() -> Stream.cuda(Device.host(), 1))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("device=host has no CUDA streams or events");
        assertThatThrownBy(() -> Event.cuda(Device.host(), 1))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("Device.cuda(index)");
        assertThatThrownBy(() -> Event.completed().cudaHandle())
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessageContaining("synchronize()");
    }

    /** This module's tests have no implementation on their class path. */
    @Test
    void whatIsMissingIsNamed() {
        assertThatThrownBy(() -> Stream.cuda(Device.cuda(0), 1))
                .isInstanceOf(DeepEpUnavailableException.class)
                .hasMessageContaining("add the artifact io.deepep:deepep where")
                .hasMessageContaining("META-INF/services")
                .hasMessageContaining("ServicesResourceTransformer");
        assertThatThrownBy(() -> Tensor.cuda(1 << 20, null, DType.F32, 1))
                .isInstanceOf(DeepEpUnavailableException.class);
    }
}
