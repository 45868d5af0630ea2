package io.deepep.lowlatency.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.EpTopology;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.GpuShare;
import io.deepep.cuda.memory.CudaMemory;
import io.deepep.cuda.memory.DevicePool;
import io.deepep.spi.CallTimeouts;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** What the memory of a rank holds at first, and that kernels which cannot be made keep none. */
class LowLatencyMemoryTest {
    private static final LowLatencyLimits LIMITS = new LowLatencyLimits(12, 384, 4, 12);

    @BeforeAll
    static void requireCuda() {
        MappedRanks.requireCuda();
        LowLatencyGpu.load(context());
    }

    private static CudaContext context() {
        return CudaContext.shared(CudaDevice.of(0));
    }

    /** A closed stream zeroes nothing, so it is the first allocation to be zeroed that fails. */
    @Test
    void whatWasAllocatedIsFreed() throws InterruptedException {
        CudaStream stream = CudaStream.create(context());
        stream.close();
        LowLatencyPlace place =
                new LowLatencyPlace(
                        context(),
                        stream,
                        new EpTopology(0, 4, 2),
                        List.of(0L, 0L, 0L, 0L),
                        null,
                        new GpuShare(132, 1),
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

    /** An engine's kernels may read the counts of a dispatch that failed, as the first may. */
    @Test
    void countsAreZeroAtFirst() {
        try (CudaStream stream = CudaStream.create(context());
                DevicePool memory = new DevicePool(stream);
                Arena arena = Arena.ofConfined()) {
            DevicePool.Block first = memory.allocate(1);
            long free = first.address() + first.numBytes(); // of the pool, nobody's yet
            stream.fillBytes(free, (byte) -1, 1 << 20);
            Tensor count = new CudaBank(LIMITS, 4, memory, stream).count();
            assertThat(count.address()).isBetween(free, free + (1 << 20));
            MemorySegment seen = arena.allocate(count.extentBytes(), Integer.BYTES);
            stream.copy(seen.address(), count.address(), count.extentBytes());
            stream.synchronize();
            assertThat(seen.toArray(ValueLayout.JAVA_INT)).containsOnly(0);
        }
    }
}
