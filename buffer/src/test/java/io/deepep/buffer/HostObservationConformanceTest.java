package io.deepep.buffer;

import io.deepep.testkit.HostTestBackend;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.ObservationConformance;

class HostObservationConformanceTest extends ObservationConformance {
    @Override
    protected TestBackend backend() {
        return new HostTestBackend();
    }
}
