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
 * The conformance suites across virtual nodes with ranks in several processes: over the peers'
 * memory, and over NVSHMEM.
 */
@Timeout(value = 400, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class CudaNetworkProcessTest {
    @TempDir private Path folder;

    @BeforeEach
    void requireGpu() {
        RequiredBackends.assume(
                Device.Kind.CUDA,
                CudaDriver.isAvailable(),
                CudaDriver.unavailabilityReason().orElse(""));
    }

    @Test
    void twoByTwoOverPeerMemory() throws Exception {
        new ProcessSuites(folder).run(4, 1, CudaInternodeConformanceTest.class);
    }

    @Test
    void twoByTwoOverPeerMemoryWithTwoThreadsInEachProcess() throws Exception {
        new ProcessSuites(folder).run(2, 2, CudaInternodeConformanceTest.class);
    }

    @Test
    void twoByOneOverNvshmem() throws Exception {
        NvshmemTestBackend.assumeNvshmem();
        new ProcessSuites(folder).run(2, 1, CudaNvshmemConformanceTest.class);
    }

    @Test
    void twoByTwoOverNvshmem() throws Exception {
        NvshmemTestBackend.assumeNvshmem();
        new ProcessSuites(folder).run(4, 1, CudaNvshmemConformanceTest.class);
    }

    @Test
    void badInputOverNvshmem() throws Exception {
        NvshmemTestBackend.assumeNvshmem();
        new ProcessSuites(folder).run(4, 1, CudaNvshmemBadInputConformanceTest.class);
    }

    @Test
    void lowLatencyTwoByOneOverNvshmem() throws Exception {
        NvshmemTestBackend.assumeNvshmem();
        new ProcessSuites(folder).run(2, 1, CudaNvshmemLowLatencyConformanceTest.class);
    }

    @Test
    void lowLatencyTwoByTwoOverNvshmem() throws Exception {
        NvshmemTestBackend.assumeNvshmem();
        new ProcessSuites(folder).run(4, 1, CudaNvshmemLowLatencyConformanceTest.class);
    }

    @Test
    void lowLatencyBadInputOverNvshmem() throws Exception {
        NvshmemTestBackend.assumeNvshmem();
        new ProcessSuites(folder).run(4, 1, CudaNvshmemLowLatencyBadInputConformanceTest.class);
    }

    @Test
    void graphsOverNvshmem() throws Exception {
        NvshmemTestBackend.assumeNvshmem();
        new ProcessSuites(folder).run(4, 1, CudaNvshmemGraphConformanceTest.class);
    }

    @Test
    void lowLatencyGraphsOverNvshmem() throws Exception {
        NvshmemTestBackend.assumeNvshmem();
        new ProcessSuites(folder).run(4, 1, CudaNvshmemLowLatencyGraphConformanceTest.class);
    }
}
