package io.deepep.buffer;

import io.deepep.Device;
import io.deepep.Stream;
import io.deepep.Tensor;
import io.deepep.cuda.CudaStream;
import io.deepep.testkit.Recording;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.conformance.LowLatencyGraphConformance;

class CudaLowLatencyGraphConformanceTest extends LowLatencyGraphConformance {
    @Override
    protected TestBackend backend() {
        return new CudaTestBackend();
    }

    @Override
    protected Recording record(Stream stream, Runnable calls) {
        return CudaTestStream.record(stream, calls);
    }

    @Override
    protected Stream newStream(Device device) {
        return new CudaTestStream(device).stream();
    }

    @Override
    protected void copy(Stream stream, Tensor from, Tensor to) {
        long numBytes = from.numElements() * from.dtype().sizeBytes();
        ((CudaStream) stream).copy(to.address(), from.address(), numBytes);
    }
}
