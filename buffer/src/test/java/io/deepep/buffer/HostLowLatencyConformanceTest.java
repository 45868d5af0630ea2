package io.deepep.buffer;

import io.deepep.testkit.HostTestBackend;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.LowLatencyConformance;

class HostLowLatencyConformanceTest extends LowLatencyConformance {
    @Override
    protected TestBackend backend() {
        return new HostTestBackend();
    }
}
