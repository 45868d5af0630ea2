package io.deepep.buffer;

import io.deepep.Device;
import io.deepep.cuda.CudaDriver;
import io.deepep.testkit.conformance.RequiredBackends;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * The conformance suite of the CUDA backend with ranks in several processes, by either way of
 * sharing device memory. Processes that share a GPU take turns, so this is slow with one GPU.
 */
@Timeout(value = 300, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class CudaProcessConformanceTest {
    @TempDir private Path folder;

    @BeforeEach
    void requireGpu() {
        RequiredBackends.assume(
                Device.Kind.CUDA,
                CudaDriver.isAvailable(),
                CudaDriver.unavailabilityReason().orElse(""));
    }

    @Test
    void byDescriptor() throws Exception {
        new ProcessSuites(folder).run(2, 1, CudaNormalConformanceTest.class);
    }

    @Test
    void byDescriptorWithTwoThreadsInEachProcess() throws Exception {
        new ProcessSuites(folder).run(2, 2, CudaNormalConformanceTest.class);
    }

    @Test
    void byCudaIpc() throws Exception {
        new ProcessSuites(folder, "-Ddeepep.cudaIpc=true")
                .run(2, 1, CudaNormalConformanceTest.class);
    }

    @Test
    void byCudaIpcWithTwoThreadsInEachProcess() throws Exception {
        new ProcessSuites(folder, "-Ddeepep.cudaIpc=true")
                .run(2, 2, CudaNormalConformanceTest.class);
    }

    @Test
    void lowLatencyByDescriptor() throws Exception {
        new ProcessSuites(folder).run(2, 1, CudaLowLatencyConformanceTest.class);
    }

    @Test
    void lowLatencyByCudaIpc() throws Exception {
        new ProcessSuites(folder, "-Ddeepep.cudaIpc=true")
                .run(2, 1, CudaLowLatencyConformanceTest.class);
    }
}
