package io.deepep.buffer;

import io.deepep.Device;
import io.deepep.Stream;
import io.deepep.testkit.Recording;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestStream;
import io.deepep.testkit.conformance.LowLatencyGraphConformance;

/** Across virtual nodes: peers' memory in place of a network. */
class CudaInternodeLowLatencyGraphConformanceTest extends LowLatencyGraphConformance {
    @Override
    protected TestBackend backend() {
        return new CudaTestBackend(true);
    }

    @Override
    protected Recording record(Stream stream, Runnable calls) {
        return CudaTestStream.record(stream, calls);
    }

    @Override
    protected TestStream newStream(Device device) {
        return new CudaTestStream(device);
    }
}
