package io.deepep.normal;

import io.deepep.Config;

/**
 * How a call across nodes divides the ring memory of a peer.
 *
 * @param numChannels rings for each peer, each with one writer and one reader
 * @param numSlots rows a ring holds
 * @param sendChunk rows put, or taken, before the peer is told; at most half of the slots
 * @param numHomeBlocks combine: see {@link CombineRoles}
 */
public record RingShape(int numChannels, int numSlots, int sendChunk, int numHomeBlocks) {
    /** Rings that a channel of the configuration is divided into at most by a dispatch. */
    public static final int MOST_DISPATCH_RINGS = 8;

    /** The same of a combine. */
    public static final int MOST_COMBINE_RINGS = 3;

    /** Rings that a channel has flags for. */
    public static final int MOST_RINGS = Math.max(MOST_DISPATCH_RINGS, MOST_COMBINE_RINGS);

    private static final int FEWEST_SLOTS = 2;

    /**
     * Where a header's {@link HeaderWord#NUM_SLOTS} has the rings of a channel, if it says them:
     * behind the slots of each.
     */
    public static final int RINGS_SHIFT = 24;

    /** Rows that a channel of the configuration has room for: enough for a combine's most rings. */
    public static int slotsOfChannel(Config config) {
        return Math.max(config.rdmaRecvChunk(), FEWEST_SLOTS * MOST_COMBINE_RINGS);
    }

    /**
     * The rings of a dispatch.
     *
     * @param rings that a channel of the configuration is divided into, and that share what it
     *     gives a channel; see {@link #mostDispatchRings}
     */
    public static RingShape ofDispatch(Config config, int rings) {
        int chunk = Math.max(1, config.rdmaSendChunk() / rings);
        int slots = slotsOfChannel(config) / rings / chunk * chunk;
        return new RingShape(config.numChannels() * rings, slots, chunk, 0);
    }

    /**
     * The rings of a combine. Those of a block share what the configuration sends at once, so that
     * a row waits as long for its peer to be told as with one ring.
     */
    public static RingShape ofCombine(Config config, CombineRoles roles) {
        int room = config.numChannels() * config.rdmaRecvChunk() / roles.numChannels();
        int slots = Math.max(FEWEST_SLOTS, room);
        int share = Math.ceilDiv(config.rdmaSendChunk(), roles.channelsPerSummingBlock());
        int chunk = Math.min(share, slots / 2);
        return new RingShape(
                roles.numChannels(), slots / chunk * chunk, chunk, roles.numHomeBlocks());
    }

    /** What a header's {@link HeaderWord#NUM_SLOTS} says. */
    static String describe(int word) {
        int rings = word >>> RINGS_SHIFT;
        int slots = word & ((1 << RINGS_SHIFT) - 1);
        return rings == 0 ? "" + slots : "%s in each of %s rings".formatted(slots, rings);
    }

    /** The most rings that a dispatch can divide a channel into: each needs two slots. */
    public static int mostDispatchRings(Config config) {
        return Math.min(MOST_DISPATCH_RINGS, slotsOfChannel(config) / FEWEST_SLOTS);
    }
}
