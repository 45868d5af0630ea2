package io.deepep.buffer;

import io.deepep.testkit.TestBackend;

/**
 * Graphs of normal-mode calls across virtual nodes over NVSHMEM. It needs a process per rank:
 * {@link CudaNetworkProcessTest} starts them.
 */
class CudaNvshmemGraphConformanceTest extends CudaNormalGraphConformanceTest {
    @Override
    protected TestBackend backend() {
        return NvshmemTestBackend.create();
    }
}
