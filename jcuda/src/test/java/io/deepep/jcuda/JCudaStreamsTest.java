package io.deepep.jcuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.Device;
import io.deepep.Event;
import io.deepep.cuda.CudaDriver;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.host.HostStream;
import jcuda.driver.CUevent;
import jcuda.driver.CUstream;
import jcuda.runtime.cudaEvent_t;
import jcuda.runtime.cudaStream_t;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/**
 * What can be said of streams and events without a GPU; with one: {@link CudaJCudaDispatchTest}.
 */
class JCudaStreamsTest {
    private static final Device GPU = Device.cuda(0);

    @Test
    void handlesGoInAndOut() {
        CUstream stream = NativePointers.set(new CUstream(), 0x1234);
        assertThat(NativePointers.get(stream)).isEqualTo(0x1234);
        assertThat(NativePointers.get(new cudaStream_t(stream))).isEqualTo(0x1234);
        assertThat(NativePointers.get(new CUstream())).isZero();
    }

    @Test
    void hostStreamsAndEventsAreRefused() {
        try (HostStream stream = new HostStream("host")) {
            assertThatThrownBy(() -> JCudaStreams.cuStreamOf(stream))
                    .isInstanceOf(UnsupportedOperationException.class)
                    .hasMessageContaining("no CUDA handle");
            assertThatThrownBy(() -> JCudaStreams.cuEventOf(stream.record()))
                    .isInstanceOf(UnsupportedOperationException.class)
                    .hasMessageContaining("synchronize()");
        }
        assertThatThrownBy(() -> JCudaStreams.cuEventOf(Event.completed()))
                .isInstanceOf(UnsupportedOperationException.class);
    }

    @Test
    void hostHasNoCudaStreams() {
        assertThatThrownBy(() -> JCudaStreams.streamOf(Device.host(), new CUstream()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("device=host");
    }

    @Test
    void withoutDriverTheReasonIsGiven() {
        Assumptions.assumeFalse(CudaDriver.isAvailable(), "there is a CUDA driver");
        assertThatThrownBy(() -> JCudaStreams.streamOf(GPU, new cudaStream_t()))
                .isInstanceOf(DeepEpUnavailableException.class);
        assertThatThrownBy(() -> JCudaStreams.eventOf(GPU, NativePointers.set(new CUevent(), 0x10)))
                .isInstanceOf(DeepEpUnavailableException.class);
        CUevent created = NativePointers.set(new CUevent(), 0x10);
        assertThatThrownBy(() -> JCudaStreams.eventOf(GPU, new cudaEvent_t(created)))
                .isInstanceOf(DeepEpUnavailableException.class);
    }
}
