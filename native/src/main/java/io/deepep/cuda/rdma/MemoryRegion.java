package io.deepep.cuda.rdma;

import java.lang.foreign.MemorySegment;

/** Memory that a card reaches, and the keys that entries name it by. */
public final class MemoryRegion implements AutoCloseable {
    private final RdmaLibraries libraries;
    private final MemorySegment region;

    MemoryRegion(RdmaLibraries libraries, MemorySegment region) {
        this.libraries = libraries;
        this.region = region;
    }

    /** For entries of this process. */
    public int localKey() {
        return (int) RdmaStructs.MR_LOCAL_KEY.get(region);
    }

    /** For entries of peers. */
    public int remoteKey() {
        return (int) RdmaStructs.MR_REMOTE_KEY.get(region);
    }

    /** Takes the keys back: not before peers have stopped writing. */
    @Override
    public void close() {
        libraries.deregMr.call(region);
    }
}
