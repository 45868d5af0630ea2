package io.deepep.buffer;

import io.deepep.testkit.HostTestBackend;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.LowLatencyBadInputConformance;

class HostLowLatencyBadInputConformanceTest extends LowLatencyBadInputConformance {
    @Override
    protected TestBackend backend() {
        return new HostTestBackend();
    }
}
