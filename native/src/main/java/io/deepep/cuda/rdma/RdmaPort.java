package io.deepep.cuda.rdma;

import io.deepep.error.DeepEpUnavailableException;
import java.util.Comparator;
import java.util.List;
import java.util.function.IntFunction;

/**
 * A port of a card, as it is now.
 *
 * @param device as {@code mlx5_0}
 * @param number from 1
 * @param active whether its link carries data
 * @param ethernet whether it is RoCE; else InfiniBand
 * @param needsGlobalHeader whether packets carry GIDs on InfiniBand too, as where its subnet
 *     manager says so
 * @param lid local id on InfiniBand
 * @param mtu in use, as InfiniBand numbers it: 1 is 256 bytes, 5 is 4096
 * @param maxMessageBytes of one entry
 * @param gids its addresses
 */
public record RdmaPort(
        String device,
        int number,
        boolean active,
        boolean ethernet,
        boolean needsGlobalHeader,
        int lid,
        int mtu,
        long maxMessageBytes,
        List<Gid> gids) {
    static final int ACTIVE = 4;
    static final int ETHERNET = 2;

    /** Among the flags of a port. */
    static final int GLOBAL_HEADER_REQUIRED = 1;

    public RdmaPort {
        gids = List.copyOf(gids);
    }

    /** As {@code mlx5_0:1}. */
    public String name() {
        return device + ":" + number;
    }

    /**
     * Refuses a port whose link carries no data.
     *
     * @throws DeepEpUnavailableException naming it
     */
    public void requireActive() {
        if (!active) {
            throw new DeepEpUnavailableException(
                    "port " + name() + " is not active",
                    "check its cable and its subnet manager (ibstat), or choose another NIC");
        }
    }

    /** Bytes of a packet. */
    public int mtuBytes() {
        return 128 << mtu;
    }

    /**
     * The address that peers are to use: on RoCE an IPv4 one of version 2, else any of version 2,
     * else any; on InfiniBand the first, which peers of its own network do not need; null if none.
     *
     * @param typeOf what the kernel says of the address at an index: {@code RoCE v2}, {@code
     *     IB/RoCE v1}, or nothing
     */
    Gid choose(IntFunction<String> typeOf) {
        Comparator<Gid> better =
                Comparator.comparing((Gid gid) -> ethernet && isVersion2(typeOf.apply(gid.idx())))
                        .thenComparing(gid -> ethernet && gid.isIpv4())
                        .thenComparing(gid -> ethernet && !gid.isLinkLocal())
                        .thenComparingInt(gid -> -gid.idx());
        return gids.stream().filter(gid -> !gid.isEmpty()).max(better).orElse(null);
    }

    private static boolean isVersion2(String type) {
        return type.contains("v2");
    }

    /** The address at an index of the table, or null. */
    Gid gid(int idx) {
        return gids.stream()
                .filter(gid -> gid.idx() == idx && !gid.isEmpty())
                .findFirst()
                .orElse(null);
    }
}
