package io.deepep.testkit.conformance;

import io.deepep.Buffer;
import io.deepep.DType;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;

/** A rank that makes calls which must be refused. */
public interface MisusedRank {
    /** Its place in the group. */
    RankContext context();

    default Buffer buffer() {
        return context().buffer();
    }

    default Tensor upload(Tensor tensor) {
        return context().upload(tensor);
    }

    /** Zeros on the rank's device. */
    default Tensor tensor(DType dtype, long... shape) {
        return upload(HostTensors.allocate(dtype, shape));
    }

    default Tensor elsewhere(Tensor tensor) {
        return Misuse.elsewhere(context(), tensor);
    }
}
