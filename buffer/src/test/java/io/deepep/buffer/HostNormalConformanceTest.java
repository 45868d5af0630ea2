package io.deepep.buffer;

import io.deepep.testkit.HostTestBackend;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.NormalConformance;

class HostNormalConformanceTest extends NormalConformance {
    @Override
    protected TestBackend backend() {
        return new HostTestBackend();
    }
}
