package io.deepep.cuda.memory;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.driver.CuCall;
import io.deepep.spi.Undo;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Host memory that GPUs reach: page-locked, mapped, usable from every context. Java reads and
 * writes {@link #segment()}, kernels {@link #deviceAddress()}. Kernel writes need a system-scope
 * release before Java's acquire sees them.
 */
public final class PinnedMemory implements AutoCloseable {
    /** Usable from every context, and mapped into the device's addresses. */
    private static final int PORTABLE_AND_MAPPED = 1 | 2;

    private static final CuCall HOST_ALLOC =
            CuCall.of("cuMemHostAlloc", ADDRESS, JAVA_LONG, JAVA_INT);
    private static final CuCall FREE_HOST = CuCall.of("cuMemFreeHost", JAVA_LONG);
    private static final CuCall GET_DEVICE_POINTER =
            CuCall.of("cuMemHostGetDevicePointer_v2", ADDRESS, JAVA_LONG, JAVA_INT);

    private final CudaContext context;
    private final Arena arena;
    private final MemorySegment segment;
    private final long deviceAddress;
    private final AtomicBoolean closed = new AtomicBoolean();

    private PinnedMemory(
            CudaContext context, Arena arena, MemorySegment segment, long deviceAddress) {
        this.context = context;
        this.arena = arena;
        this.segment = segment;
        this.deviceAddress = deviceAddress;
    }

    /** Allocates page-locked memory, aligned to a page, zeroed. */
    public static PinnedMemory allocate(CudaContext context, long numBytes) {
        CudaMemory.checkSize(numBytes);
        context.makeCurrent();
        try (Undo made = new Undo()) {
            long address =
                    made.made(HOST_ALLOC.ask(numBytes, PORTABLE_AND_MAPPED), FREE_HOST::call);
            long deviceAddress = GET_DEVICE_POINTER.ask(address, 0);
            // Shared, so that any thread may read, and later reads fail cleanly instead of
            // crashing.
            Arena arena = Arena.ofShared();
            MemorySegment segment =
                    MemorySegment.ofAddress(address).reinterpret(numBytes, arena, null);
            segment.fill((byte) 0);
            made.forget();
            return new PinnedMemory(context, arena, segment, deviceAddress);
        }
    }

    /** The memory as Java sees it. */
    public MemorySegment segment() {
        return segment;
    }

    /** The memory as kernels see it. */
    public long deviceAddress() {
        if (closed.get()) {
            throw new IllegalStateException("pinned memory is closed");
        }
        return deviceAddress;
    }

    /** Frees the memory: not before the GPU is done with it. Idempotent. */
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            context.makeCurrent();
            arena.close();
            FREE_HOST.call(segment.address());
        }
    }
}
