package io.deepep.buffer;

import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BadInputConformance;

class CudaInternodeBadInputConformanceTest extends BadInputConformance {
    @Override
    protected TestBackend backend() {
        return new CudaTestBackend(true);
    }
}
