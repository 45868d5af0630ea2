package io.deepep.buffer;

import io.deepep.Device;
import io.deepep.testkit.HostTestBackend;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestStream;
import io.deepep.testkit.conformance.LowLatencyStreamConformance;

class HostLowLatencyStreamConformanceTest extends LowLatencyStreamConformance {
    @Override
    protected TestBackend backend() {
        return new HostTestBackend();
    }

    @Override
    protected TestStream newStream(Device device) {
        return new HostTestStream();
    }
}
