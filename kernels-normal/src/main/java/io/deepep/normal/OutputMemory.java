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
    Tensor tensor(DType dtype, long... shape);
}
