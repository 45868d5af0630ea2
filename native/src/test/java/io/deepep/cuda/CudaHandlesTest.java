package io.deepep.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.DType;
import io.deepep.Device;
import io.deepep.Event;
import io.deepep.Stream;
import io.deepep.Tensor;
import io.deepep.cuda.memory.CudaMemory;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.spi.CudaProvider;
import io.deepep.testkit.conformance.RequiredBackends;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/** The API's way to streams, events and memory of the driver. */
class CudaHandlesTest {
    private static final Device GPU = Device.cuda(0);

    @Test
    void theServiceIsFound() {
        assertThat(CudaProvider.load()).isInstanceOf(CudaHandles.class);
    }

    @Test
    void withoutADriverTheReasonIsGiven() {
        Assumptions.assumeFalse(CudaDriver.isAvailable(), "there is a CUDA driver");
        assertThatThrownBy(() -> Stream.cuda(GPU, 1))
                .isInstanceOf(DeepEpUnavailableException.class);
        assertThatThrownBy(() -> Event.cuda(GPU, 1)).isInstanceOf(DeepEpUnavailableException.class);
        assertThatThrownBy(() -> Tensor.cuda(1 << 20, null, DType.F32, 1))
                .isInstanceOf(DeepEpUnavailableException.class);
    }

    @Test
    void handlesGoInAndOut() {
        RequiredBackends.assumeCuda(CudaDriver.unavailabilityReason());
        CudaContext context = CudaContext.shared(CudaDevice.of(0));
        try (CudaStream made = CudaStream.create(context);
                CudaEvent point = CudaEvent.create(context);
                CudaMemory memory = CudaMemory.allocate(context, 1024)) {
            Stream stream = Stream.cuda(GPU, made.cudaHandle());
            assertThat(stream.cudaHandle()).isEqualTo(made.handle());
            assertThat(stream.device()).isEqualTo(GPU);
            made.record(point);
            Event event = Event.cuda(GPU, point.cudaHandle());
            event.synchronize();
            stream.waitFor(event);
            stream.synchronize();
            assertThat(event.isDone()).isTrue();
            assertThat(event.cudaHandle()).isEqualTo(point.handle());

            Tensor second = Tensor.cuda(memory.address() + 512, null, DType.F32, 2, 64);
            assertThat(second.device()).isEqualTo(GPU);
            assertThat(second.isContiguous()).isTrue();
            assertThatThrownBy(() -> Tensor.cuda(memory.address() + 512, null, DType.F32, 1 << 28))
                    .isInstanceOf(IllegalArgumentException.class);
        }
        assertThatThrownBy(() -> Event.cuda(GPU, 0))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("handle=0 is not an event");
    }
}
