package io.deepep.lowlatency.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.EpTopology;
import io.deepep.LowLatencyLimits;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.memory.CudaMemory;
import io.deepep.spi.CallTimeouts;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Kernels that cannot be made keep none of their memory. */
class LowLatencyMemoryTest {
    private static final LowLatencyLimits LIMITS = new LowLatencyLimits(12, 384, 4, 12);

    @BeforeAll
    static void requireCuda() {
        MappedRanks.requireCuda();
    }

    /** A closed stream zeroes nothing, so it is the second allocation that fails. */
    @Test
    void whatWasAllocatedIsFreed() throws InterruptedException {
        CudaContext context = CudaContext.shared(CudaDevice.of(0));
        LowLatencyGpu.load(context);
        CudaStream stream = CudaStream.create(context);
        stream.close();
        LowLatencyPlace place =
                new LowLatencyPlace(
                        context,
                        stream,
                        new EpTopology(0, 4, 2),
                        List.of(0L, 0L, 0L, 0L),
                        null,
                        1,
                        0,
                        new CallTimeouts(Duration.ofSeconds(1), null));
        long before = CudaMemory.heldBytes();
        assertThatThrownBy(() -> new CudaLowLatencyKernels(place, LIMITS, false))
                .isInstanceOf(IllegalStateException.class);
        for (int i = 0; i < 100 && CudaMemory.heldBytes() > before; i++) {
            System.gc(); // what was allocated is kept until nobody can reach it
            Thread.sleep(50);
        }
        assertThat(CudaMemory.heldBytes()).isLessThanOrEqualTo(before);
    }
}
