package io.deepep.buffer;

import io.deepep.testkit.TestBackend;

/** Across virtual nodes: peers' memory in place of a network. */
class CudaInternodeLowLatencyGraphConformanceTest extends CudaLowLatencyGraphConformanceTest {
    @Override
    protected TestBackend backend() {
        return new CudaTestBackend(true);
    }
}
