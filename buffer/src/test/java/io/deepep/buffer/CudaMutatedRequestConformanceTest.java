package io.deepep.buffer;

import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.MutatedRequestConformance;

class CudaMutatedRequestConformanceTest extends MutatedRequestConformance {
    @Override
    protected TestBackend backend() {
        return new CudaTestBackend();
    }

    /** Each takes the emulator some tenths of a second. */
    @Override
    protected int few() {
        return 40;
    }
}
