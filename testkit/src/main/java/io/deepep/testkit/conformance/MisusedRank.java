package io.deepep.testkit.conformance;

import io.deepep.Buffer;
import io.deepep.DType;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;

/** A rank that has dispatched, and makes calls which must be refused. */
public interface MisusedRank {
    /** The rank with its good inputs. */
    ExchangeRank<?, ?> inputs();

    default RankContext context() {
        return inputs().context();
    }

    default Buffer buffer() {
        return context().buffer();
    }

    default Tensor x() {
        return inputs().x();
    }

    default Tensor topkIdx() {
        return inputs().topkIdx();
    }

    default Tensor weights() {
        return inputs().weights();
    }

    default Tensor upload(Tensor tensor) {
        return context().upload(tensor);
    }

    /** Zeros on the rank's device. */
    default Tensor tensor(DType dtype, long... shape) {
        return upload(HostTensors.allocate(dtype, shape));
    }

    default Tensor bf16(long... shape) {
        return tensor(DType.BF16, shape);
    }

    default Tensor f32(long... shape) {
        return tensor(DType.F32, shape);
    }

    default Tensor i32(long... shape) {
        return tensor(DType.I32, shape);
    }

    default Tensor i64(long... shape) {
        return tensor(DType.I64, shape);
    }

    /** The same with rows that are not contiguous. */
    default Tensor withColumnGap(DType dtype, long... shape) {
        return upload(HostTensors.withColumnGap(HostTensors.allocate(dtype, shape)));
    }

    default Tensor elsewhere(Tensor tensor) {
        return Misuse.elsewhere(context(), tensor);
    }
}
