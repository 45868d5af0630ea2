package io.deepep.cuda.memory;

import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaDriver;
import io.deepep.cuda.memory.VirtualMemory.Export;
import io.deepep.error.NativeCallException;
import io.deepep.spi.posix.PosixFd;
import io.deepep.testkit.conformance.RequiredBackends;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

class VirtualMemoryTest {
    private static final long BYTES = 2L << 20;

    /** The driver refuses smaller memory when the address leads nowhere already. */
    @Test
    void memoryThatIsNotReplacedStays() {
        RequiredBackends.assumeCuda(CudaDriver.unavailabilityReason());
        CudaContext context = CudaContext.shared(CudaDevice.of(0));
        try (Arena arena = Arena.ofConfined();
                VirtualMemory small = VirtualMemory.allocate(context, BYTES, Export.POSIX_FD);
                VirtualMemory large = VirtualMemory.allocate(context, 2 * BYTES, Export.POSIX_FD)) {
            large.copyFrom(0, arena.allocateFrom(JAVA_LONG, 42));
            int fd = small.exportPosixFd();
            assertThatThrownBy(() -> large.replaceBy(fd))
                    .isInstanceOf(NativeCallException.class)
                    .hasMessageContaining("cuMemMap");
            PosixFd.close(fd);
            MemorySegment seen = arena.allocate(JAVA_LONG);
            large.copyTo(0, seen);
            assertThat(seen.get(JAVA_LONG, 0)).isEqualTo(42);
        }
    }
}
