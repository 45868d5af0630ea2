package io.deepep.buffer;

import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.LowLatencyBadInputConformance;

/** Across virtual nodes: peers' memory in place of a network. */
class CudaInternodeLowLatencyBadInputConformanceTest extends LowLatencyBadInputConformance {
    @Override
    protected TestBackend backend() {
        return new CudaTestBackend(true);
    }
}
