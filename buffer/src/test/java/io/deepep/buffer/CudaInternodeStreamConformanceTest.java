package io.deepep.buffer;

import io.deepep.Device;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestStream;
import io.deepep.testkit.conformance.NormalStreamConformance;

/** Across virtual nodes. */
class CudaInternodeStreamConformanceTest extends NormalStreamConformance {
    @Override
    protected TestBackend backend() {
        return new CudaTestBackend(true);
    }

    @Override
    protected TestStream newStream(Device device) {
        return new CudaTestStream(device);
    }
}
