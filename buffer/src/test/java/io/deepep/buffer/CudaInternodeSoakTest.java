package io.deepep.buffer;

import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.NormalSoak;

/** Across virtual nodes. */
class CudaInternodeSoakTest extends NormalSoak {
    @Override
    protected TestBackend backend() {
        return new CudaTestBackend(true);
    }
}
