package io.deepep.buffer;

import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.NormalConformance;

/** Normal mode across virtual nodes: peers' memory in place of a network. */
class CudaInternodeConformanceTest extends NormalConformance {
    @Override
    protected TestBackend backend() {
        return new CudaTestBackend(true);
    }
}
