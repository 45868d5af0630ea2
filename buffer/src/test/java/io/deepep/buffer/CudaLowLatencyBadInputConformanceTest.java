package io.deepep.buffer;

import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.LowLatencyBadInputConformance;

class CudaLowLatencyBadInputConformanceTest extends LowLatencyBadInputConformance {
    @Override
    protected TestBackend backend() {
        return new CudaTestBackend();
    }
}
