package io.deepep.host;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/**
 * The host's symmetric heap: the same layout on every rank, every rank's segment known here. A rank
 * that is out of reach (another node, for the NVL heap) has no segment, so a protocol that takes a
 * forbidden path fails.
 *
 * <p>Flags are 8-byte longs. {@link #signal} is the only way to tell a peer something: a release
 * store that makes all earlier plain stores visible to the {@link #flag} (acquire) which reads it,
 * followed by the peer's doorbell.
 */
public final class HostHeap {
    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();

    private final int rank;
    private final MemorySegment[] segments;
    private final HostDoorbell[] doorbells;
    private final HeapLease lease;

    /**
     * A heap.
     *
     * @param lease of its memory, which this object holds on to
     */
    HostHeap(int rank, MemorySegment[] segments, HostDoorbell[] doorbells, HeapLease lease) {
        this.rank = rank;
        this.segments = segments;
        this.doorbells = doorbells;
        this.lease = lease;
    }

    /** This rank's memory. */
    public MemorySegment local() {
        return segments[rank];
    }

    /** The memory of {@code peer}. */
    public MemorySegment of(int peer) {
        MemorySegment segment = segments[peer];
        if (segment == null) {
            throw new IllegalStateException(
                    "rank " + rank + " has no direct path to the memory of rank " + peer);
        }
        return segment;
    }

    /** Sets the flag at {@code offset} of {@code peer}'s memory (release) and wakes it. */
    public void signal(int peer, long offset, long value) {
        LONG.setRelease(of(peer), offset, value);
        doorbells[peer].ring();
    }

    /** Reads a flag of this rank's memory (acquire); pairs with {@link #signal}. */
    public long flag(long offset) {
        return (long) LONG.getAcquire(local(), offset);
    }

    /**
     * The part {@code [offset, offset + bytes)} of the heap, as a heap of its own with offsets from
     * 0.
     */
    public HostHeap window(long offset, long bytes) {
        MemorySegment[] parts = new MemorySegment[segments.length];
        for (int peer = 0; peer < parts.length; peer++) {
            parts[peer] = segments[peer] == null ? null : segments[peer].asSlice(offset, bytes);
        }
        return new HostHeap(rank, parts, doorbells, lease);
    }
}
