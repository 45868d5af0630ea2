package io.deepep.cuda.rdma;

import io.deepep.Network;
import io.deepep.error.DeepEpUnavailableException;

/** How packets of queue pairs travel: what {@link Network.Path} may say. */
public final class Paths {
    private static final int MIN_MTU = 256;
    private static final int MAX_MTU = 4096;
    private static final int MAX_GID_INDEX = 255;

    private Paths() {}

    /**
     * Checks the ranges.
     *
     * @throws DeepEpUnavailableException if a value is outside its range
     */
    public static void check(Network.Path path) {
        Network.Quality quality = path.quality();
        require("gidIndex", quality.gidIndex(), Network.Quality.FIND_GID, MAX_GID_INDEX);
        require("trafficClass", quality.trafficClass(), 0, 255);
        require("serviceLevel", quality.serviceLevel(), 0, 15);
        require("retries", path.retries(), 0, 7);
        require("ackTimeout", path.ackTimeout(), 1, 31);
        boolean packets = Integer.bitCount(path.mtu()) == 1 && path.mtu() >= MIN_MTU;
        if (path.mtu() != 0 && (!packets || path.mtu() > MAX_MTU)) {
            throw new DeepEpUnavailableException(
                    "mtu=" + path.mtu() + " is not a size of packets",
                    "use 256, 512, 1024, 2048 or 4096, or 0 for the MTU of the ports");
        }
    }

    private static void require(String name, int value, int least, int most) {
        if (value < least || value > most) {
            throw new DeepEpUnavailableException(
                    name + "=" + value + " is not in [" + least + ", " + most + "]",
                    "leave it out, or give a value in that range");
        }
    }

    /** The size of packets between two ports, as InfiniBand numbers it. */
    static int mtu(Network.Path path, int own, int peers) {
        int both = Math.min(own, peers);
        int wanted = path.mtu() == 0 ? both : Integer.numberOfTrailingZeros(path.mtu() / 128);
        return Math.min(both, wanted);
    }
}
