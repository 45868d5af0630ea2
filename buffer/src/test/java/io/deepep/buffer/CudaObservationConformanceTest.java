package io.deepep.buffer;

import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.ObservationConformance;

class CudaObservationConformanceTest extends ObservationConformance {
    @Override
    protected TestBackend backend() {
        return new CudaTestBackend();
    }
}
