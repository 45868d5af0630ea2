package io.deepep.cuda.rdma;

import io.deepep.Network;
import io.deepep.error.DeepEpUnavailableException;

/**
 * How packets of queue pairs travel.
 *
 * @param gidIndex address of a RoCE port; {@link Network.Quality#FIND_GID} to look for it
 * @param trafficClass 0 to 255
 * @param serviceLevel 0 to 15; on RoCE the priority, 0 to 7
 * @param mtuBytes of packets, a power of two from 256 to 4096; 0 for what both ports have
 * @param retries 0 to 7: how often a packet without an answer is sent again
 * @param ackTimeout 1 to 31: an answer is late after 4.096 microseconds times 2 to this power
 * @param adaptiveRouting whether packets of a queue pair may take different paths
 */
public record PathOptions(
        int gidIndex,
        int trafficClass,
        int serviceLevel,
        int mtuBytes,
        int retries,
        int ackTimeout,
        boolean adaptiveRouting) {
    private static final int MIN_MTU = 256;
    private static final int MAX_MTU = 4096;
    private static final int MAX_GID_INDEX = 255;

    /**
     * Checks the ranges.
     *
     * @throws DeepEpUnavailableException if a value is outside its range
     */
    public PathOptions {
        require("gidIndex", gidIndex, Network.Quality.FIND_GID, MAX_GID_INDEX);
        require("trafficClass", trafficClass, 0, 255);
        require("serviceLevel", serviceLevel, 0, 15);
        require("retries", retries, 0, 7);
        require("ackTimeout", ackTimeout, 1, 31);
        boolean packets = Integer.bitCount(mtuBytes) == 1 && mtuBytes >= MIN_MTU;
        if (mtuBytes != 0 && (!packets || mtuBytes > MAX_MTU)) {
            throw new DeepEpUnavailableException(
                    "mtu=" + mtuBytes + " is not a size of packets",
                    "use 256, 512, 1024, 2048 or 4096, or 0 for the MTU of the ports",
                    null);
        }
    }

    private static void require(String name, int value, int least, int most) {
        if (value < least || value > most) {
            throw new DeepEpUnavailableException(
                    name + "=" + value + " is not in [" + least + ", " + most + "]",
                    "leave it out, or give a value in that range",
                    null);
        }
    }

    /** The size of packets between two ports, as InfiniBand numbers it. */
    int mtu(int own, int peers) {
        int both = Math.min(own, peers);
        int wanted = mtuBytes == 0 ? both : Integer.numberOfTrailingZeros(mtuBytes / 128);
        return Math.min(both, wanted);
    }
}
