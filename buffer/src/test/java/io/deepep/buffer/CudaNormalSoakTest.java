package io.deepep.buffer;

import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.NormalSoak;

class CudaNormalSoakTest extends NormalSoak {
    @Override
    protected TestBackend backend() {
        return new CudaTestBackend();
    }
}
