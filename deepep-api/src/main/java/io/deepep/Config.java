package io.deepep;

import io.deepep.spi.BufferProvider;

/**
 * How normal-mode operations use the machine: multiprocessors, and the rings between nodes. The
 * same values on every rank.
 *
 * @param numSms streaming multiprocessors that an operation may hold: an even number, or 1 on one
 *     node. On the host, as on GPUs, half of it is the number of RDMA channels
 * @param rdmaSendChunk rows that a channel sends to another node before it tells the receiver, at
 *     most half of {@code rdmaRecvChunk}; without effect on one node
 * @param rdmaRecvChunk rows that the ring of one channel holds for each other node; without effect
 *     on one node
 */
public record Config(int numSms, int rdmaSendChunk, int rdmaRecvChunk) {
    private static final int DEFAULT_SMS = 20;
    private static final int FEW_RANKS = 8;

    /** Validates the numbers. */
    public Config {
        requireNumSms(numSms);
        requirePositive("rdmaSendChunk", rdmaSendChunk);
        if (rdmaSendChunk > rdmaRecvChunk / 2) {
            throw new IllegalArgumentException(
                    "rdmaSendChunk="
                            + rdmaSendChunk
                            + " is above half of rdmaRecvChunk="
                            + rdmaRecvChunk);
        }
    }

    static int requireNumSms(int numSms) {
        if (numSms != 1 && (numSms < 2 || numSms % 2 != 0)) {
            throw new IllegalArgumentException(
                    "numSms=" + numSms + " is not an even number of at least 2, nor 1");
        }
        return numSms;
    }

    private static void requirePositive(String name, int value) {
        if (value < 1) {
            throw new IllegalArgumentException(name + "=" + value + " must be at least 1");
        }
    }

    /**
     * The configuration to start with for {@code numRanks} ranks, for dispatch and combine. Its
     * number of multiprocessors is that of an H100 or H200; {@link NormalDefaults} has those of
     * other GPUs.
     */
    public static Config recommended(int numRanks) {
        requirePositive("numRanks", numRanks);
        if (numRanks <= FEW_RANKS) {
            return new Config(DEFAULT_SMS, 8, 64);
        }
        // More nodes: fewer tokens go to each, so chunks stay small while the ring covers the
        // longer round trip.
        return new Config(DEFAULT_SMS, numRanks <= 64 ? 16 : 8, 128);
    }

    /**
     * The smallest configuration that has room for this one and {@code other}: the larger of each
     * number. A buffer is laid out for the configuration that covers those of dispatch and combine;
     * its size hints are exactly what the buffer needs.
     */
    public Config covering(Config other) {
        return new Config(
                Math.max(numSms, other.numSms),
                Math.max(rdmaSendChunk, other.rdmaSendChunk),
                Math.max(rdmaRecvChunk, other.rdmaRecvChunk));
    }

    /** Pairs of sender and receiver roles that work in parallel: half of the multiprocessors. */
    public int numChannels() {
        return numSms / 2;
    }

    /** The same configuration with another number of multiprocessors. */
    public Config withNumSms(int sms) {
        return new Config(sms, rdmaSendChunk, rdmaRecvChunk);
    }

    /**
     * Bytes of NVLink-visible memory that each rank needs for normal mode; {@link Buffer.Builder}
     * allocates as much by default.
     *
     * @param limits largest shapes the buffer will see
     * @param topology the group; the rank does not matter
     */
    public long nvlBufferSizeHint(NormalLimits limits, EpTopology topology) {
        return BufferProvider.load().normalNvlBytes(this, limits, topology);
    }

    /**
     * Bytes of RDMA-visible memory that each rank needs for normal mode; 0 if the group is one
     * node.
     */
    public long rdmaBufferSizeHint(NormalLimits limits, EpTopology topology) {
        return BufferProvider.load().normalRdmaBytes(this, limits, topology);
    }
}
