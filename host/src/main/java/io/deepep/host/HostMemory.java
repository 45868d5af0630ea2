package io.deepep.host;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.Tensor;
import io.deepep.spi.TensorMemory;
import io.deepep.spi.posix.NativeAccess;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.Optional;

/**
 * Zeroed off-heap memory. Large worst-case buffers cost only the pages that are touched: memory
 * comes from C's {@code calloc}, which maps fresh zero pages, where {@link Arena#allocate} would
 * write every byte. Without native access it falls back to the latter.
 */
public final class HostMemory {
    private static final long ALIGNMENT = 128;
    private static final Optional<Allocator> CALLOC = Allocator.find();

    private HostMemory() {}

    /**
     * Allocates {@code bytes} zeroed bytes on a 128-byte line, freed when {@code arena} closes.
     *
     * @throws IllegalArgumentException if {@code bytes} is negative, as a size that overflowed is
     */
    public static MemorySegment allocate(Arena arena, long bytes) {
        if (bytes < 0) {
            throw new IllegalArgumentException(
                    "bytes=" + bytes + " is negative; the requested size may have overflowed");
        }
        long size = Math.max(bytes, 1);
        return CALLOC.isPresent()
                ? CALLOC.get().allocate(arena, size)
                : allocateDirect(arena, size);
    }

    /** Tensors that cost only the pages that are used, freed when {@code arena} closes. */
    public static TensorMemory tensors(Arena arena) {
        return (numBytes, dtype, shape) -> Tensor.of(allocate(arena, numBytes), dtype, shape);
    }

    /**
     * Of automatic arenas, Java limits such memory to the size of the heap if nobody sets another
     * limit.
     */
    private static MemorySegment allocateDirect(Arena arena, long size) {
        try {
            return arena.allocate(size, ALIGNMENT);
        } catch (OutOfMemoryError full) {
            OutOfMemoryError explained =
                    new OutOfMemoryError(
                            "%s; start Java with %s, which avoids Java's limit, or raise it with -XX:MaxDirectMemorySize"
                                    .formatted(full.getMessage(), NativeAccess.OPTION));
            explained.initCause(full);
            throw explained;
        }
    }

    private record Allocator(MethodHandle calloc, MethodHandle free) {
        @SuppressWarnings("restricted")
        static Optional<Allocator> find() {
            if (!HostMemory.class.getModule().isNativeAccessEnabled()) {
                return Optional.empty();
            }
            Linker linker = Linker.nativeLinker();
            Optional<MemorySegment> calloc = linker.defaultLookup().find("calloc");
            Optional<MemorySegment> free = linker.defaultLookup().find("free");
            if (calloc.isEmpty() || free.isEmpty()) {
                return Optional.empty();
            }
            return Optional.of(
                    new Allocator(
                            linker.downcallHandle(
                                    calloc.get(),
                                    FunctionDescriptor.of(ADDRESS, JAVA_LONG, JAVA_LONG)),
                            linker.downcallHandle(free.get(), FunctionDescriptor.ofVoid(ADDRESS))));
        }

        @SuppressWarnings("restricted")
        MemorySegment allocate(Arena arena, long size) {
            long padded = size + ALIGNMENT; // unsigned for calloc, which refuses what overflows
            MemorySegment block = callCalloc(padded);
            if (block.address() == 0) {
                throw new OutOfMemoryError(
                        ("cannot allocate %s bytes of off-heap memory; lower the limits of the buffer, or the number"
                                        + " of ranks")
                                .formatted(size));
            }
            long skip = -block.address() & (ALIGNMENT - 1);
            return block.reinterpret(padded, arena, this::callFree).asSlice(skip, size);
        }

        private MemorySegment callCalloc(long size) {
            try {
                return (MemorySegment) calloc.invokeExact(1L, size);
            } catch (Throwable failure) {
                throw new AssertionError("calloc does not throw", failure);
            }
        }

        private void callFree(MemorySegment block) {
            try {
                free.invokeExact(block);
            } catch (Throwable failure) {
                throw new AssertionError("free does not throw", failure);
            }
        }
    }
}
