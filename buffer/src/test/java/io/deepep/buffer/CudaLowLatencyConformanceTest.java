package io.deepep.buffer;

import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.LowLatencyConformance;

class CudaLowLatencyConformanceTest extends LowLatencyConformance {
    @Override
    protected TestBackend backend() {
        return new CudaTestBackend();
    }
}
