package io.deepep.cuda.memory;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.driver.CuCall;
import io.deepep.cuda.driver.CuError;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A range of device memory that one object owns. Closing it frees or unmaps it: not before the GPU
 * is done with it.
 *
 * <p>The copies here wait until they are done; {@link CudaStream} has those that do not.
 */
public abstract sealed class CudaMemory implements AutoCloseable
        permits CudaMemory.Allocated, VirtualMemory, IpcMemory {
    private static final CuCall ALLOC = CuCall.of("cuMemAlloc_v2", ADDRESS, JAVA_LONG);
    private static final CuCall FREE = CuCall.of("cuMemFree_v2", JAVA_LONG);
    private static final CuCall COPY_TO_DEVICE =
            CuCall.of("cuMemcpyHtoD_v2", JAVA_LONG, ADDRESS, JAVA_LONG);
    private static final CuCall COPY_TO_HOST =
            CuCall.of("cuMemcpyDtoH_v2", ADDRESS, JAVA_LONG, JAVA_LONG);
    private static final CuCall STREAM_SYNCHRONIZE = CuCall.of("cuStreamSynchronize", JAVA_LONG);
    private static final CuCall MEMSET =
            CuCall.of("cuMemsetD8_v2", JAVA_LONG, JAVA_BYTE, JAVA_LONG);

    private static final AtomicLong HELD_BYTES = new AtomicLong();

    private final CudaContext context;
    private final long address;
    private final long numBytes;
    private final AtomicBoolean closed = new AtomicBoolean();

    CudaMemory(CudaContext context, long address, long numBytes) {
        this.context = context;
        this.address = address;
        this.numBytes = numBytes;
        HELD_BYTES.addAndGet(numBytes);
    }

    /** Bytes of all such ranges that are open in this process, as they were asked for. */
    public static long heldBytes() {
        return HELD_BYTES.get();
    }

    /**
     * Allocates device memory, aligned to at least 256 bytes, contents undefined. Can be shared by
     * {@link IpcHandle}.
     *
     * @throws DeepEpUnavailableException if there is too little
     */
    public static CudaMemory allocate(CudaContext context, long numBytes) {
        checkSize(numBytes);
        context.makeCurrent();
        try {
            return new Allocated(context, ALLOC.ask(numBytes), numBytes);
        } catch (NativeCallException refused) {
            throw explain(refused, context, numBytes);
        }
    }

    /** What a refused allocation becomes: with the numbers, if it is that there is too little. */
    static RuntimeException explain(
            NativeCallException refused, CudaContext context, long numBytes) {
        if (refused.code() != CuError.OUT_OF_MEMORY) {
            return refused;
        }
        return new DeepEpUnavailableException(
                "%s has %s bytes of memory left, not %s: %s"
                        .formatted(
                                context.device(),
                                context.freeMemoryBytes(),
                                numBytes,
                                refused.getMessage()),
                "free memory on the GPU, lower the limits of the buffer, or use fewer ranks for each GPU",
                refused);
    }

    static void checkSize(long numBytes) {
        if (numBytes <= 0) {
            throw new IllegalArgumentException("numBytes=" + numBytes + " is not positive");
        }
    }

    /** The context it belongs to. */
    public final CudaContext context() {
        return context;
    }

    /** Device address of the first byte, valid in every context of this process that has access. */
    public final long address() {
        if (closed.get()) {
            throw new IllegalStateException("device memory is closed");
        }
        return address;
    }

    /** Size in bytes, as asked for. */
    public final long numBytes() {
        return numBytes;
    }

    /**
     * Copies a whole host segment to {@code offset}, and waits.
     *
     * @param source an off-heap segment
     */
    public final void copyFrom(long offset, MemorySegment source) {
        Objects.checkFromIndexSize(offset, source.byteSize(), numBytes);
        context.makeCurrent();
        COPY_TO_DEVICE.invoke(address() + offset, source, source.byteSize());
        awaitDefaultStream();
    }

    /**
     * Fills a whole host segment from {@code offset}, and waits.
     *
     * @param target an off-heap segment
     */
    public final void copyTo(long offset, MemorySegment target) {
        Objects.checkFromIndexSize(offset, target.byteSize(), numBytes);
        context.makeCurrent();
        COPY_TO_HOST.invoke(target, address() + offset, target.byteSize());
    }

    /** Sets every byte to 0, and waits. */
    public final void clear() {
        context.makeCurrent();
        MEMSET.call(address(), (byte) 0, numBytes);
        awaitDefaultStream();
    }

    /**
     * The driver's own calls return before the GPU is done, and non-blocking streams do not wait
     * for that.
     */
    private static void awaitDefaultStream() {
        STREAM_SYNCHRONIZE.call(0L);
    }

    /** Frees the range; the driver waits for work that may use it. Idempotent. */
    @Override
    public final void close() {
        if (closed.compareAndSet(false, true)) {
            context.makeCurrent();
            release(address);
            HELD_BYTES.addAndGet(-numBytes);
        }
    }

    abstract void release(long address);

    /** Plain device memory. */
    static final class Allocated extends CudaMemory {
        private Allocated(CudaContext context, long address, long numBytes) {
            super(context, address, numBytes);
        }

        @Override
        void release(long address) {
            FREE.call(address);
        }
    }
}
