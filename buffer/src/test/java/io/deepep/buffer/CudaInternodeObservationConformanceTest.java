package io.deepep.buffer;

import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.ObservationConformance;

/** Across virtual nodes: peers' memory in place of a network. */
class CudaInternodeObservationConformanceTest extends ObservationConformance {
    @Override
    protected TestBackend backend() {
        return new CudaTestBackend(true);
    }
}
