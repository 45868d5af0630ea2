package io.deepep.lowlatency;

import io.deepep.DType;
import io.deepep.Tensor;

/** Where a backend has the tensors of results. */
@FunctionalInterface
public interface TensorMemory {
    /** A contiguous tensor over {@code numBytes}, which is its size; of undefined content. */
    Tensor allocate(long numBytes, DType dtype, long... shape);

    /** The same of a size that follows from type and shape. */
    default Tensor allocate(DType dtype, long... shape) {
        long numBytes = dtype.sizeBytes();
        for (long size : shape) {
            numBytes = Math.multiplyExact(numBytes, size);
        }
        return allocate(numBytes, dtype, shape);
    }
}
