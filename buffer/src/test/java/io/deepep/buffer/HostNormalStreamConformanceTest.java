package io.deepep.buffer;

import io.deepep.Device;
import io.deepep.testkit.HostTestBackend;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestStream;
import io.deepep.testkit.conformance.NormalStreamConformance;

class HostNormalStreamConformanceTest extends NormalStreamConformance {
    @Override
    protected TestBackend backend() {
        return new HostTestBackend();
    }

    @Override
    protected TestStream newStream(Device device) {
        return new HostTestStream();
    }
}
