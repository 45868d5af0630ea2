package io.deepep.testkit.conformance;

import io.deepep.Buffer;
import io.deepep.Communicator;
import io.deepep.DType;
import io.deepep.Device;
import io.deepep.EpTopology;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestBackend;

/**
 * What one rank's thread of a test has at hand.
 *
 * @param backend under test
 * @param communicator of the rank
 * @param buffer open, closed by the test's frame
 */
public record RankContext(TestBackend backend, Communicator communicator, Buffer buffer) {
    public int rank() {
        return communicator.rank();
    }

    public EpTopology topology() {
        return buffer.topology();
    }

    public Device device() {
        return backend.device(rank(), communicator.size());
    }

    public Tensor upload(Tensor hostTensor) {
        return hostTensor == null ? null : backend.upload(device(), hostTensor);
    }

    public Tensor download(Tensor deviceTensor) {
        return backend.download(deviceTensor);
    }

    /** A device tensor full of NaNs, for results. */
    public Tensor poisoned(DType dtype, long... shape) {
        return upload(HostTensors.poison(HostTensors.allocate(dtype, shape)));
    }

    /** The same rank with another buffer. */
    public RankContext with(Buffer other) {
        return new RankContext(backend, communicator, other);
    }
}
