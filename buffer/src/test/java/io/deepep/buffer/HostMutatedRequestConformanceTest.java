package io.deepep.buffer;

import io.deepep.testkit.HostTestBackend;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.MutatedRequestConformance;

class HostMutatedRequestConformanceTest extends MutatedRequestConformance {
    @Override
    protected TestBackend backend() {
        return new HostTestBackend();
    }
}
