package io.deepep.buffer;

import io.deepep.Device;
import io.deepep.Stream;
import io.deepep.testkit.Recording;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.NormalGraphConformance;

/** Across virtual nodes. */
class CudaInternodeGraphConformanceTest extends NormalGraphConformance {
    @Override
    protected TestBackend backend() {
        return new CudaTestBackend(true);
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
