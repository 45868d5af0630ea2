package io.deepep.buffer;

import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.LowLatencyBadInputConformance;

/** See {@link CudaNvshmemLowLatencyConformanceTest}. */
class CudaNvshmemLowLatencyBadInputConformanceTest extends LowLatencyBadInputConformance {
    @Override
    protected TestBackend backend() {
        return NvshmemTestBackend.create();
    }
}
