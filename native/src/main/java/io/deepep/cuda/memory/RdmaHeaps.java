package io.deepep.cuda.memory;

import io.deepep.cuda.NetworkLibrary;
import java.util.List;
import java.util.Optional;

/**
 * The RDMA buffers of all ranks, as one of them reaches them.
 *
 * @param addresses of every rank's, on this rank's GPU; 0 where only the library reaches it
 * @param library empty where all of them can be addressed
 */
public record RdmaHeaps(List<Long> addresses, Optional<NetworkLibrary> library) {
    /** Where there are none, or nobody needs them. */
    public static final RdmaHeaps NONE = ofPeers(List.of());

    /** Copies the list. */
    public RdmaHeaps {
        addresses = List.copyOf(addresses);
    }

    /** Memory that this rank's GPU can address. */
    public static RdmaHeaps ofPeers(List<Long> addresses) {
        return new RdmaHeaps(addresses, Optional.empty());
    }

    /** The same parts of all buffers, from {@code offset} on. */
    public RdmaHeaps from(long offset) {
        return new RdmaHeaps(
                addresses.stream().map(address -> address == 0 ? 0 : address + offset).toList(),
                library);
    }
}
