package io.deepep.buffer;

import io.deepep.testkit.TestBackend;

/**
 * Graphs of low-latency calls across virtual nodes over NVSHMEM. It needs a process per rank:
 * {@link CudaNetworkProcessTest} starts them.
 */
class CudaNvshmemLowLatencyGraphConformanceTest extends CudaLowLatencyGraphConformanceTest {
    @Override
    protected TestBackend backend() {
        return NvshmemTestBackend.create();
    }
}
