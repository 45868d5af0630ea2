package io.deepep.normal.host;

import io.deepep.host.HostMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Memory of a result that grows with what arrives. Left to the garbage collector, because the
 * engine may still hold tensors over it.
 */
final class OutputMemory {
    private MemorySegment segment = MemorySegment.NULL;

    /** At least {@code bytes} bytes; the same memory as last time if that was enough. */
    MemorySegment ensure(long bytes) {
        if (segment.byteSize() < bytes || segment.byteSize() == 0) {
            long room = segment.byteSize() == 0 ? bytes : Math.addExact(bytes, bytes / 4);
            segment = HostMemory.allocate(Arena.ofAuto(), room);
        }
        return segment;
    }

    MemorySegment segment() {
        return segment;
    }
}
