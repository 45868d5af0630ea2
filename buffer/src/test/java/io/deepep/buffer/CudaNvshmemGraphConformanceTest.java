package io.deepep.buffer;

import io.deepep.Device;
import io.deepep.Stream;
import io.deepep.testkit.Recording;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.NormalGraphConformance;

/**
 * Graphs of normal-mode calls across virtual nodes over NVSHMEM. It needs a process per rank:
 * {@link CudaNetworkProcessTest} starts them.
 */
class CudaNvshmemGraphConformanceTest extends NormalGraphConformance {
    @Override
    protected TestBackend backend() {
        return NvshmemTestBackend.create();
    }

    @Override
    protected Recording record(Stream stream, Runnable calls) {
        return CudaTestStream.record(stream, calls);
    }

    @Override
    protected Stream newStream(Device device) {
        return new CudaTestStream(device).stream();
    }
}
