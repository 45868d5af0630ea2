package io.deepep.buffer.parity;

import io.deepep.DType;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import io.deepep.testkit.TestBackend;

/**
 * One rank's tensors of a case, on their way to its device and back.
 *
 * @param backend whose device it is
 */
record RankMemory(TestBackend backend, int rank, ParityCase parity) {
    /** An input on the host, or null if the case does not give it. */
    Tensor host(String input) {
        return parity.inputs().get(rank).get(input);
    }

    /** An input on the device, or null if the case does not give it. */
    Tensor device(String input) {
        return upload(host(input));
    }

    /** A copy on the device of a host tensor; null for null. */
    Tensor upload(Tensor tensor) {
        return tensor == null
                ? null
                : backend.upload(backend.device(rank, parity.inputs().size()), tensor);
    }

    /** A contiguous copy on the host; null for null. */
    Tensor download(Tensor tensor) {
        return tensor == null ? null : backend.download(tensor);
    }

    /** A host tensor whose undefined elements are poisoned. */
    static Tensor poisoned(DType dtype, long... shape) {
        return HostTensors.poison(HostTensors.allocate(dtype, shape));
    }
}
