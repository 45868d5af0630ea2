package io.deepep.cuda.memory;

import io.deepep.cuda.NetworkLibrary;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * The RDMA buffers of all ranks, as one of them reaches them.
 *
 * @param addresses of every rank's, on this rank's GPU; 0 where only a network reaches it
 * @param library that kernels call; empty where they need none
 * @param queues that kernels write themselves: {@code Network.queues}; 0 for none
 * @param standIns more of these, to the ranks that {@code queues} do not lead to, which may serve
 *     instead of masked ones; empty where ranks are not masked
 */
public record RdmaHeaps(
        List<Long> addresses,
        Optional<NetworkLibrary> library,
        long queues,
        OptionalLong standIns) {
    /** Where there are none, or nobody needs them. */
    public static final RdmaHeaps NONE = ofPeers(List.of());

    public RdmaHeaps {
        addresses = List.copyOf(addresses);
    }

    /** Memory that this rank's GPU can address. */
    public static RdmaHeaps ofPeers(List<Long> addresses) {
        return over(Optional.empty(), addresses);
    }

    /** Memory of which kernels reach some by a library, if there is one. */
    public static RdmaHeaps over(Optional<NetworkLibrary> library, List<Long> addresses) {
        return new RdmaHeaps(addresses, library, 0, OptionalLong.empty());
    }

    /** Memory that kernels reach by queues of their own where it is on another node. */
    public static RdmaHeaps over(long queues, OptionalLong standIns, List<Long> addresses) {
        return new RdmaHeaps(addresses, Optional.empty(), queues, standIns);
    }

    /** The same parts of all buffers, from {@code offset} on. */
    public RdmaHeaps from(long offset) {
        return new RdmaHeaps(
                addresses.stream().map(address -> address == 0 ? 0 : address + offset).toList(),
                library,
                queues,
                standIns);
    }
}
