package io.deepep.cuda;

import io.deepep.DType;
import io.deepep.Tensor;
import java.lang.ref.Cleaner;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;

/**
 * Device memory for outputs of one stream's operations, which engines hold as long as they like: a
 * block returns to the pool when nobody can reach it any more.
 *
 * <p>Blocks are never given back to the driver before {@link #close}, because freeing waits for all
 * kernels of the GPU, among them those of other ranks that wait for this one. A returned block may
 * still be in use by work enqueued earlier, so all work on this pool's memory must be ordered by
 * its one stream.
 */
public final class DevicePool implements AutoCloseable {
    private static final Cleaner CLEANER = Cleaner.create();
    private static final long GRANULE_BYTES = 512;

    private final CudaContext context;
    private final CudaStream stream;
    private final List<CudaMemory> all = new ArrayList<>();
    private final TreeMap<Long, List<CudaMemory>> free = new TreeMap<>();
    private boolean closed;

    /** A pool whose memory is used in the order of {@code stream}. */
    public DevicePool(CudaStream stream) {
        this.context = stream.context();
        this.stream = stream;
    }

    /** Memory out of a pool. Tensors over it keep it. */
    public static final class Block {
        private final CudaContext context;
        private final long address;
        private final long numBytes;

        private Block(CudaMemory memory) {
            this.context = memory.context();
            this.address = memory.address();
            this.numBytes = memory.numBytes();
        }

        /** Device address of the first byte, a multiple of 256. */
        public long address() {
            return address;
        }

        /** Size in bytes, at least what was asked for. */
        public long numBytes() {
            return numBytes;
        }

        /** A contiguous tensor over the beginning of this block. */
        public Tensor tensor(DType dtype, long... shape) {
            long[] strides = new long[shape.length];
            long next = 1;
            for (int d = shape.length - 1; d >= 0; d--) {
                strides[d] = next;
                next *= Math.max(shape[d], 1);
            }
            return Tensor.onDevice(
                    context.device(), address, numBytes, dtype, shape, strides, this);
        }
    }

    /** A block of undefined content. */
    public Block allocate(long numBytes) {
        CudaMemory memory =
                take(Math.ceilDiv(Math.max(numBytes, 1), GRANULE_BYTES) * GRANULE_BYTES);
        Block block = new Block(memory);
        CLEANER.register(block, () -> giveBack(memory));
        return block;
    }

    /** A block that is zero for work enqueued from now on. */
    public Block allocateZeroed(long numBytes) {
        Block block = allocate(numBytes);
        stream.fillBytes(block.address(), (byte) 0, block.numBytes());
        return block;
    }

    private synchronized CudaMemory take(long numBytes) {
        if (closed) {
            throw new IllegalStateException("the pool of " + context + " is closed");
        }
        var fit = free.ceilingEntry(numBytes);
        // A much larger block would be wasted on a small wish.
        if (fit != null && fit.getKey() <= 2 * numBytes) {
            CudaMemory memory = fit.getValue().removeLast();
            if (fit.getValue().isEmpty()) {
                free.remove(fit.getKey());
            }
            return memory;
        }
        CudaMemory memory = CudaMemory.allocate(context, numBytes);
        all.add(memory);
        return memory;
    }

    private synchronized void giveBack(CudaMemory memory) {
        if (!closed) {
            free.computeIfAbsent(memory.numBytes(), size -> new ArrayList<>()).add(memory);
        }
    }

    /** Bytes held, in use or not. */
    public synchronized long numBytes() {
        return all.stream().mapToLong(CudaMemory::numBytes).sum();
    }

    /** Frees all memory; waits for the GPU. Tensors over it are invalid afterwards. */
    @Override
    public synchronized void close() {
        closed = true;
        all.forEach(CudaMemory::close);
        all.clear();
        free.clear();
    }
}
