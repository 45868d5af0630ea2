package io.deepep.normal.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.EpTopology;
import io.deepep.NormalDefaults;
import io.deepep.NormalLimits;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.GpuShare;
import io.deepep.cuda.memory.CudaMemory;
import io.deepep.spi.CallTimeouts;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Kernels that cannot be made keep none of their memory. */
class NormalMemoryTest {
    private static final NormalLimits LIMITS = NormalLimits.of(50, 200, 5, 42);

    /** A closed stream zeroes nothing, so it is the second allocation that fails. */
    @Test
    void whatWasAllocatedIsFreed() throws InterruptedException {
        NormalAddressesTest.requireCuda();
        CudaContext context = CudaContext.shared(CudaDevice.of(0));
        CudaNormalKernels.load(context);
        CudaStream stream = CudaStream.create(context);
        stream.close();
        NormalDefaults defaults = NormalDefaults.recommended(2);
        CudaNormalKernels.RankSetup setup =
                new CudaNormalKernels.RankSetup(
                        context,
                        stream,
                        new EpTopology(0, 2, 2),
                        List.of(0L, 0L),
                        null,
                        true,
                        new GpuShare(132, 1),
                        0,
                        false,
                        new CallTimeouts(Duration.ofSeconds(1), null));
        long before = CudaMemory.heldBytes();
        assertThatThrownBy(
                        () ->
                                new CudaNormalKernels(
                                        setup,
                                        LIMITS,
                                        defaults.dispatch(),
                                        defaults.combine(),
                                        defaults))
                .isInstanceOf(IllegalStateException.class);
        for (int i = 0; i < 100 && CudaMemory.heldBytes() > before; i++) {
            System.gc(); // what was allocated is kept until nobody can reach it
            Thread.sleep(50);
        }
        assertThat(CudaMemory.heldBytes()).isLessThanOrEqualTo(before);
    }
}
