package io.deepep.buffer;

import io.deepep.Device;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestStream;
import io.deepep.testkit.conformance.LowLatencyStreamConformance;

class CudaLowLatencyStreamConformanceTest extends LowLatencyStreamConformance {
    @Override
    protected TestBackend backend() {
        return new CudaTestBackend();
    }

    @Override
    protected TestStream newStream(Device device) {
        return new CudaTestStream(device);
    }
}
