package io.deepep.buffer;

import io.deepep.testkit.HostTestBackend;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.NormalSoak;

class HostNormalSoakTest extends NormalSoak {
    @Override
    protected TestBackend backend() {
        return new HostTestBackend();
    }
}
