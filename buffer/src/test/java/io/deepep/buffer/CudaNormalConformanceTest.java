package io.deepep.buffer;

import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.NormalConformance;

class CudaNormalConformanceTest extends NormalConformance {
    @Override
    protected TestBackend backend() {
        return new CudaTestBackend();
    }
}
