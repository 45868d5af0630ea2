package io.deepep.buffer;

import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.LowLatencyConformance;

/** Across virtual nodes: peers' memory in place of a network. */
class CudaInternodeLowLatencyConformanceTest extends LowLatencyConformance {
    @Override
    protected TestBackend backend() {
        return new CudaTestBackend(true);
    }
}
