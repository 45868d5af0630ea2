package io.deepep.bench.run;

import io.deepep.Network;

/** A network in a few words, for reports and records. */
public final class NetworkText {
    private NetworkText() {}

    /** Such as {@code NVSHMEM, transport IBGDA}; of a buffer's network, which is chosen. */
    public static String of(Network network) {
        return switch (network) {
            case Network.Nvshmem nvshmem ->
                    "NVSHMEM, transport "
                            + nvshmem.transport()
                            + (nvshmem.pureRdma() ? ", pure RDMA" : "");
            case Network.Ibgda ibgda -> "IBGDA" + (ibgda.pureRdma() ? ", pure RDMA" : "");
            case Network.PeerMemory peerMemory -> peerMemory.toString();
            case Network.Auto auto -> auto.toString();
        };
    }
}
