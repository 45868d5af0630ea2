package io.deepep.buffer;

import io.deepep.testkit.HostTestBackend;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.BadInputConformance;

class HostBadInputConformanceTest extends BadInputConformance {
    @Override
    protected TestBackend backend() {
        return new HostTestBackend();
    }
}
