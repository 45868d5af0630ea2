package io.deepep.cuda;

import io.deepep.DType;
import io.deepep.Tensor;
import java.lang.ref.Cleaner;

/**
 * Device memory that is freed when nobody can reach it any more: outputs of operations, which
 * engines hold as long as they like. Tensors over it keep it reachable.
 */
public final class CollectedMemory {
    private static final Cleaner CLEANER = Cleaner.create();

    private final CudaContext context;
    private final long address;
    private final long numBytes;

    private CollectedMemory(CudaContext context, CudaMemory memory) {
        this.context = context;
        this.address = memory.address();
        this.numBytes = memory.numBytes();
    }

    /** Allocates at least one byte, contents undefined. */
    public static CollectedMemory allocate(CudaContext context, long numBytes) {
        return collect(context, CudaMemory.allocate(context, Math.max(numBytes, 1)));
    }

    /** Allocates zeroed memory. */
    public static CollectedMemory allocateZeroed(CudaContext context, long numBytes) {
        CudaMemory memory = CudaMemory.allocate(context, Math.max(numBytes, 1));
        memory.clear();
        return collect(context, memory);
    }

    private static CollectedMemory collect(CudaContext context, CudaMemory memory) {
        CollectedMemory collected = new CollectedMemory(context, memory);
        CLEANER.register(
                collected,
                () -> {
                    if (!context.isClosed()) {
                        memory.close();
                    }
                });
        return collected;
    }

    /** Device address of the first byte. */
    public long address() {
        return address;
    }

    /** Size in bytes. */
    public long numBytes() {
        return numBytes;
    }

    /** A contiguous tensor over the beginning of this memory. */
    public Tensor tensor(DType dtype, long... shape) {
        long[] strides = new long[shape.length];
        long next = 1;
        for (int d = shape.length - 1; d >= 0; d--) {
            strides[d] = next;
            next *= Math.max(shape[d], 1);
        }
        return Tensor.onDevice(context.device(), address, numBytes, dtype, shape, strides, this);
    }
}
