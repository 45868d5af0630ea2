package io.deepep.cuda.nvshmem;

import java.util.OptionalLong;

/** A piece of the symmetric heap. */
public final class NvshmemMemory extends NvshmemPart {
    private final long address;

    NvshmemMemory(Nvshmem nvshmem, long address) {
        super(nvshmem, "nvshmem_free", library -> library.free(address), () -> {});
        this.address = address;
    }

    /** Device address on this PE, which NVSHMEM's device functions take for every PE. */
    public long address() {
        return address;
    }

    /**
     * Device address through which this PE reaches a rank's piece directly, over NVLink.
     *
     * @return empty if only NVSHMEM reaches it
     * @throws IllegalArgumentException if the rank is not in this world
     */
    public OptionalLong peerAddress(int rank) {
        long peer = nvshmem().peerAddress(address, rank);
        return peer == 0 ? OptionalLong.empty() : OptionalLong.of(peer);
    }
}
