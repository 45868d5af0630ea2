package io.deepep.normal.cuda;

import io.deepep.Config;

/**
 * How a call across nodes divides the ring memory of a peer.
 *
 * @param numChannels rings for each peer: one for each pair of warps, a sending and a forwarding
 *     one
 * @param numSlots rows a ring holds
 * @param sendChunk rows put, or taken, before the peer is told; at most half of the slots
 */
record RingShape(int numChannels, int numSlots, int sendChunk) {
    /**
     * The rings of a configuration.
     *
     * @param warps of a block that have a ring each; they share what the configuration gives a
     *     channel, see {@link #mostWarps}
     */
    static RingShape of(Config config, int warps) {
        int chunk = Math.max(1, config.rdmaSendChunk() / warps);
        int slots = config.rdmaRecvChunk() / warps / chunk * chunk;
        return new RingShape(config.numChannels() * warps, slots, chunk);
    }

    /** The most warps that can share a channel: each needs two slots. */
    static int mostWarps(Config config) {
        return config.rdmaRecvChunk() / 2;
    }
}
