package io.deepep.spi;

import io.deepep.DType;
import io.deepep.Tensor;

/** Where a backend has the tensors of results. */
@FunctionalInterface
public interface TensorMemory {
    /** A contiguous tensor over {@code numBytes}, which is its size; of undefined content. */
    Tensor tensor(long numBytes, DType dtype, long... shape);

    /** The same of a size that follows from type and shape. */
    default Tensor tensor(DType dtype, long... shape) {
        long numBytes = dtype.sizeBytes();
        for (long size : shape) {
            numBytes = Math.multiplyExact(numBytes, size);
        }
        return tensor(numBytes, dtype, shape);
    }
}
