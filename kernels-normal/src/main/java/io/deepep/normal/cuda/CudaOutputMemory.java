package io.deepep.normal.cuda;

import io.deepep.DType;
import io.deepep.Tensor;
import io.deepep.cuda.memory.DevicePool;
import io.deepep.spi.TensorMemory;

/**
 * Memory of a result that grows with what arrives, out of a rank's pool. Whoever holds a tensor
 * keeps its memory, also when that has been replaced by more.
 */
final class CudaOutputMemory implements TensorMemory {
    private final DevicePool pool;
    private DevicePool.Block block;

    CudaOutputMemory(DevicePool pool) {
        this.pool = pool;
    }

    @Override
    public Tensor tensor(long numBytes, DType dtype, long... shape) {
        reserve(numBytes);
        return block.tensor(dtype, shape);
    }

    /** Has room for so many bytes. */
    void reserve(long numBytes) {
        if (block == null || block.numBytes() < numBytes) {
            block = pool.allocate(numBytes);
        }
    }

    /** Of the device; 0 while nothing was reserved. */
    long address() {
        return block == null ? 0 : block.address();
    }
}
