package io.deepep.buffer;

import io.deepep.Device;
import io.deepep.Stream;
import io.deepep.testkit.Recording;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestStream;
import io.deepep.testkit.conformance.LowLatencyGraphConformance;

/**
 * Graphs of low-latency calls across virtual nodes over NVSHMEM. It needs a process per rank:
 * {@link CudaNetworkProcessTest} starts them.
 */
class CudaNvshmemLowLatencyGraphConformanceTest extends LowLatencyGraphConformance {
    @Override
    protected TestBackend backend() {
        return NvshmemTestBackend.create();
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
