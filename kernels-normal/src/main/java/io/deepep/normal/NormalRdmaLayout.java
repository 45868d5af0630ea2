package io.deepep.normal;

import io.deepep.Config;
import io.deepep.EpTopology;
import io.deepep.NormalLimits;
import io.deepep.spi.Layout;
import io.deepep.spi.Region;
import io.deepep.spi.RowFormat;

/**
 * Each rank's RDMA buffer in normal mode, written by the ranks with the same nvlRank on the other
 * nodes; empty when the group is one node.
 *
 * <pre>
 *   headers       [2][nodes]           NormalHeader slot of the peer on each node, by parity of the epoch, to be relayed over NVL
 *   channelMeta   [channels][nodes]    epoch (flag), token count, tokens in earlier channels, first index at each nvlRank
 *   dispatchRing  [channels][nodes][rdmaRecvChunk]  row, then on its own lines: mask of nvlRanks i32, recvMeta
 *   dispatchTails [channels][nodes]    slots ever filled by that node            written by the sender
 *   dispatchHeads [channels][nodes]    slots ever freed by that node             written by the forwarder, back at the sender
 *   combineRing   [channels][nodes][rdmaRecvChunk]  BF16 row summed over that node, then on its own lines: f32[K]
 *   combineTails, combineHeads         as above, the other way round
 * </pre>
 *
 * Tails and heads count up for ever and are never cleared.
 *
 * @param numSlots slots of each ring
 * @param slotMetaOffset bytes from the start of a ring slot to what follows its row
 */
public record NormalRdmaLayout(
        Layout layout,
        int numSlots,
        long slotMetaOffset,
        Region headers,
        Region channelMeta,
        Region dispatchRing,
        Region dispatchTails,
        Region dispatchHeads,
        Region combineRing,
        Region combineTails,
        Region combineHeads) {
    private static final long FLAG_BYTES = 8;
    private static final long CHANNEL_META_BYTES = 8L * (3 + EpTopology.MAX_NVL_RANKS);

    /**
     * The layout for a buffer.
     *
     * @param envelope the larger of the buffer's configurations, see {@link
     *     io.deepep.Config#covering}
     * @param topology the group; the rank does not matter
     */
    public static NormalRdmaLayout of(Config envelope, NormalLimits limits, EpTopology topology) {
        boolean internode = topology.isInternode();
        int nodes = topology.numRdmaRanks();
        int channels = internode ? envelope.numChannels() : 0;
        int slots = envelope.rdmaRecvChunk();
        long rowBytes = RowFormat.maxStrideBytes(limits.hidden());
        long dispatchSlot =
                rowBytes + Layout.alignToLine(4 + NormalNvlLayout.metaBytes(limits.maxTopk()));
        long combineSlot = rowBytes + Layout.alignToLine(4L * limits.maxTopk());
        Layout.Builder builder = Layout.builder("NormalRdmaLayout");
        Region headers =
                builder.region(
                        "headers",
                        NormalHeader.slotBytes(topology.numRanks(), limits.maxExperts()),
                        internode ? 2 : 0,
                        nodes);
        Region channelMeta =
                builder.region(
                        "channelMeta", Layout.alignToLine(CHANNEL_META_BYTES), channels, nodes);
        Region dispatchRing = builder.region("dispatchRing", dispatchSlot, channels, nodes, slots);
        Region dispatchTails = builder.region("dispatchTails", FLAG_BYTES, channels, nodes);
        Region dispatchHeads = builder.region("dispatchHeads", FLAG_BYTES, channels, nodes);
        Region combineRing = builder.region("combineRing", combineSlot, channels, nodes, slots);
        Region combineTails = builder.region("combineTails", FLAG_BYTES, channels, nodes);
        Region combineHeads = builder.region("combineHeads", FLAG_BYTES, channels, nodes);
        return new NormalRdmaLayout(
                builder.build(),
                slots,
                rowBytes,
                headers,
                channelMeta,
                dispatchRing,
                dispatchTails,
                dispatchHeads,
                combineRing,
                combineTails,
                combineHeads);
    }
}
