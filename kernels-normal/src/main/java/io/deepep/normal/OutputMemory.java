package io.deepep.normal;

import io.deepep.DType;
import io.deepep.Tensor;

/**
 * Memory of a result that grows with what arrives. Whoever holds a tensor keeps its memory, also
 * when that has been replaced by more.
 */
@FunctionalInterface
public interface OutputMemory {
    /** A contiguous tensor over the memory, which is that of the last one if it was enough. */
    default Tensor tensor(DType dtype, long... shape) {
        long numBytes = dtype.sizeBytes();
        for (long size : shape) {
            numBytes = Math.multiplyExact(numBytes, size);
        }
        return tensor(numBytes, dtype, shape);
    }

    /** The same, where {@code numBytes} is the size of the tensor. */
    Tensor tensor(long numBytes, DType dtype, long... shape);
}
