package io.deepep.cuda.memory;

import io.deepep.DType;
import io.deepep.Tensor;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaStream;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import io.deepep.spi.TensorMemory;
import java.lang.ref.Cleaner;
import java.util.ArrayList;
import java.util.List;

/**
 * Device memory for outputs of one stream's operations, which engines hold as long as they like: a
 * block returns to the pool when nobody can reach it any more.
 *
 * <p>Blocks are cut from slabs of {@link VirtualMemory}, whose mapping and unmapping wait for no
 * kernel. Plain device memory is not used: freeing that waits for all kernels of the GPU, among
 * them those of other ranks that wait for this one. Slabs stay until {@link #close}.
 *
 * <p>A returned block may still be in use by work enqueued earlier, so all work on this pool's
 * memory must be ordered by its one stream.
 */
public final class DevicePool implements TensorMemory, AutoCloseable {
    private static final Cleaner CLEANER = Cleaner.create();
    private static final long GRANULE_BYTES = 512;
    private static final long SLAB_BYTES = 16L << 20;
    private static final int MAX_COLLECTIONS = 5;
    private static final long COLLECTION_MILLIS = 100;

    private final CudaStream stream;
    private final List<Slab> slabs = new ArrayList<>();
    private boolean closed;

    /** A pool without memory as yet, used in the order of {@code stream}. */
    public DevicePool(CudaStream stream) {
        this.stream = stream;
    }

    /** A pool that has {@code reservedBytes} from the beginning. */
    public DevicePool(CudaStream stream, long reservedBytes) {
        this(stream);
        slabs.add(new Slab(stream.context(), reservedBytes));
    }

    /** A mapped range and its free parts. */
    private static final class Slab {
        private final VirtualMemory memory;
        private final FreeRanges free;

        Slab(CudaContext context, long numBytes) {
            long whole = roundUp(numBytes);
            memory = VirtualMemory.allocate(context, whole, VirtualMemory.Export.NONE);
            free = new FreeRanges(whole);
        }
    }

    private record Piece(Slab slab, long offset, long numBytes) {}

    /** Memory out of a pool. Tensors over it keep it. */
    public static final class Block {
        private final CudaContext context;
        private final long address;
        private final long numBytes;

        private Block(CudaContext context, Piece piece) {
            this.context = context;
            this.address = piece.slab().memory.address() + piece.offset();
            this.numBytes = piece.numBytes();
        }

        /** Device address of the first byte, a multiple of 512. */
        public long address() {
            return address;
        }

        /** Size in bytes, at least what was asked for. */
        public long numBytes() {
            return numBytes;
        }

        /** A contiguous tensor over the beginning of this block. */
        public Tensor tensor(DType dtype, long... shape) {
            long[] strides = Tensor.contiguousStrides(shape);
            return Tensor.onDevice(
                    context.device(), address, numBytes, dtype, shape, strides, this);
        }
    }

    /**
     * A block of undefined content.
     *
     * @throws DeepEpUnavailableException if there is too little memory, even after the garbage
     *     collector has had its chance to return blocks
     */
    public Block allocate(long numBytes) {
        Piece piece = take(roundUp(Math.max(numBytes, 1)));
        Block block = new Block(stream.context(), piece);
        CLEANER.register(block, () -> giveBack(piece));
        return block;
    }

    @Override
    public Tensor tensor(long numBytes, DType dtype, long... shape) {
        return allocate(numBytes).tensor(dtype, shape);
    }

    /** A block that is zero for work enqueued from now on. */
    public Block allocateZeroed(long numBytes) {
        Block block = allocate(numBytes);
        stream.fillBytes(block.address(), (byte) 0, block.numBytes());
        return block;
    }

    private static long roundUp(long numBytes) {
        return Math.ceilDiv(numBytes, GRANULE_BYTES) * GRANULE_BYTES;
    }

    private synchronized Piece take(long numBytes) {
        if (closed) {
            throw new IllegalStateException("the pool of " + stream.context() + " is closed");
        }
        Piece piece = takeFree(numBytes);
        for (int collections = 0; piece == null; collections++) {
            try {
                slabs.add(new Slab(stream.context(), Math.max(numBytes, SLAB_BYTES)));
            } catch (DeepEpUnavailableException full) {
                if (collections == MAX_COLLECTIONS) {
                    throw full;
                }
                // Unreachable blocks are as good as free, but the collector knows nothing of them.
                System.gc();
                try {
                    wait(COLLECTION_MILLIS);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }
            piece = takeFree(numBytes);
        }
        return piece;
    }

    private Piece takeFree(long numBytes) {
        for (Slab slab : slabs) {
            long offset = slab.free.take(numBytes);
            if (offset >= 0) {
                return new Piece(slab, offset, numBytes);
            }
        }
        return null;
    }

    private synchronized void giveBack(Piece piece) {
        piece.slab().free.giveBack(piece.offset(), piece.numBytes());
        if (closed && piece.slab().free.isWhole() && !stream.context().isClosed()) {
            piece.slab().memory.close();
        }
    }

    /** Bytes held, in use or not. */
    public synchronized long numBytes() {
        return slabs.stream().mapToLong(slab -> slab.memory.numBytes()).sum();
    }

    /**
     * Waits until the stream's work is done, and unmaps what nobody can reach; the rest as soon as
     * it becomes unreachable. Idempotent.
     */
    @Override
    public void close() {
        try {
            stream.awaitEnd();
        } catch (NativeCallException failed) {
            // The GPU has failed, and runs nothing any more.
        }
        unmap();
    }

    private synchronized void unmap() {
        if (!closed) {
            closed = true;
            slabs.stream().filter(slab -> slab.free.isWhole()).forEach(slab -> slab.memory.close());
        }
    }
}
