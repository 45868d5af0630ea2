package io.deepep.host;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Flags of a heap, and waits for them. */
final class TestFlags {
    private TestFlags() {}

    /** A heap for a single rank without peers. */
    static HostHeap single(Arena arena, long bytes) {
        return new HostHeap(
                0,
                new MemorySegment[] {HostMemory.allocate(arena, bytes)},
                new HostDoorbell[] {new HostDoorbell()},
                new HeapLease(0, () -> {}));
    }

    /**
     * Waits until the flag at {@code offset} of this rank's memory is at least {@code value}; pairs
     * with {@link HostHeap#signal}.
     */
    static void await(
            HostWait wait, HostHeap heap, long offset, long value, int peer, String phase) {
        wait.start();
        for (long seen = heap.flag(offset); seen < value; seen = heap.flag(offset)) {
            wait.idle(peer, phase, value, seen);
        }
    }
}
