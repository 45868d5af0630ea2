package io.deepep.buffer;

import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BadInputConformance;

/** See {@link CudaNvshmemConformanceTest}. */
class CudaNvshmemBadInputConformanceTest extends BadInputConformance {
    @Override
    protected TestBackend backend() {
        return NvshmemTestBackend.create();
    }
}
