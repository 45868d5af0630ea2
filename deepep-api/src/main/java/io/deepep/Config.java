package io.deepep;

import io.deepep.spi.BufferProvider;

/**
 * The resources that normal-mode operations use: multiprocessors, and the rings between nodes. The
 * same on every rank.
 *
 * @param numSms streaming multiprocessors that an operation may hold: an even number, or 1 on one
 *     node. Half of it is the number of RDMA channels, on the host too
 * @param rdmaSendChunk rows that a channel sends to another node before it signals the receiver, at
 *     most half of {@code rdmaRecvChunk}; no effect on one node
 * @param rdmaRecvChunk rows that the ring of one channel holds for each other node; no effect on
 *     one node
 */
public record Config(int numSms, int rdmaSendChunk, int rdmaRecvChunk) {
    private static final int DEFAULT_SMS = 20;
    private static final int FEW_RANKS = 8;

    /** Validates the numbers. */
    public Config {
        requireNumSms(numSms);
        Numbers.requirePositive("rdmaSendChunk", rdmaSendChunk);
        if (rdmaSendChunk > rdmaRecvChunk / 2) {
            throw new IllegalArgumentException(
                    "rdmaSendChunk=%s exceeds half of rdmaRecvChunk=%s"
                            .formatted(rdmaSendChunk, rdmaRecvChunk));
        }
    }

    static int requireNumSms(int numSms) {
        if (numSms != 1 && (numSms < 2 || numSms % 2 != 0)) {
            throw new IllegalArgumentException(
                    "numSms=" + numSms + " must be 1 or an even number of at least 2");
        }
        return numSms;
    }

    /**
     * The recommended configuration of dispatch and combine for {@code numRanks} ranks. Its number
     * of multiprocessors is right for one node of H100s or H200s; {@link NormalDefaults} adapts it
     * to other GPUs and to several nodes.
     */
    public static Config recommended(int numRanks) {
        Numbers.requirePositive("numRanks", numRanks);
        if (numRanks <= FEW_RANKS) {
            return new Config(DEFAULT_SMS, 8, 64);
        }
        // More nodes: fewer tokens go to each, so chunks stay small while the ring covers the
        // longer round trip.
        return new Config(DEFAULT_SMS, numRanks <= 64 ? 16 : 8, 128);
    }

    /**
     * The smallest configuration that covers this one and {@code other}: the larger of each number.
     * A buffer is laid out for the configuration that covers those of dispatch and combine, so the
     * size hints of that configuration are exactly what the buffer needs.
     */
    public Config covering(Config other) {
        return new Config(
                Math.max(numSms, other.numSms),
                Math.max(rdmaSendChunk, other.rdmaSendChunk),
                Math.max(rdmaRecvChunk, other.rdmaRecvChunk));
    }

    /** Channels to every other node, which share the ring memory: half of the multiprocessors. */
    public int numChannels() {
        return numSms / 2;
    }

    /** A copy of this configuration with another number of multiprocessors. */
    public Config withNumSms(int sms) {
        return new Config(sms, rdmaSendChunk, rdmaRecvChunk);
    }

    /**
     * Bytes of NVLink-visible memory that each rank needs for normal mode; {@link Buffer.Builder}
     * allocates that much by default.
     *
     * @param limits largest shapes that the buffer is used with
     * @param topology the group; the result is the same for each of its ranks
     */
    public long nvlBufferSizeHint(NormalLimits limits, EpTopology topology) {
        return BufferProvider.load().normalNvlBytes(this, limits, topology);
    }

    /**
     * Bytes of RDMA-visible memory that each rank needs for normal mode; 0 if the group is a single
     * node.
     */
    public long rdmaBufferSizeHint(NormalLimits limits, EpTopology topology) {
        return BufferProvider.load().normalRdmaBytes(this, limits, topology);
    }
}
