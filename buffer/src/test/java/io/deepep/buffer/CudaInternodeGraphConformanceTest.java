package io.deepep.buffer;

import io.deepep.testkit.TestBackend;

/** Across virtual nodes. */
class CudaInternodeGraphConformanceTest extends CudaNormalGraphConformanceTest {
    @Override
    protected TestBackend backend() {
        return new CudaTestBackend(true);
    }
}
