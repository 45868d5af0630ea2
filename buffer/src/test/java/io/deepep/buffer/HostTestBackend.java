package io.deepep.buffer;

import io.deepep.Device;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestBackend;
import io.deepep.testkit.TestStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** The host backend in tests: device memory is off-heap memory, poisoned when new. */
public final class HostTestBackend implements TestBackend {
    /** Creates the backend. */
    public HostTestBackend() {}

    @Override
    public String name() {
        return "host";
    }

    @Override
    public Device.Kind kind() {
        return Device.Kind.HOST;
    }

    @Override
    public Device device(int rank, int numRanks) {
        return Device.host();
    }

    @Override
    public Tensor upload(Device device, Tensor hostTensor) {
        MemorySegment from = hostTensor.segment();
        MemorySegment memory = Arena.ofAuto().allocate(Math.max(from.byteSize(), 1), 128);
        memory.copyFrom(from);
        return Tensor.strided(memory, hostTensor.dtype(), hostTensor.shape(), hostTensor.strides());
    }

    @Override
    public Tensor download(Tensor deviceTensor) {
        return HostTensors.copyOf(deviceTensor);
    }

    @Override
    public void write(Tensor hostTensor, Tensor deviceTensor) {
        HostTensors.copy(hostTensor, deviceTensor);
    }

    @Override
    public TestStream newStream(Device device) {
        return new HostTestStream();
    }

    @Override
    public String toString() {
        return name();
    }
}
