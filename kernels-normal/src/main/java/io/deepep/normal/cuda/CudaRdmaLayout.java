package io.deepep.normal.cuda;

import io.deepep.Config;
import io.deepep.EpTopology;
import io.deepep.NormalLimits;
import io.deepep.normal.HeaderWord;
import io.deepep.spi.Layout;
import io.deepep.spi.Region;
import io.deepep.spi.RowFormat;

/**
 * Each rank's RDMA buffer on a GPU in normal mode; empty when the group is one node. Every region
 * has a cell for each node, written by the rank with the same nvlRank there.
 *
 * <pre>
 *   headers      [nodes][2]           32 + R + experts per node words i32 by parity of the epoch, relayed to the node
 *   records      [nodes][maxTokens]   dispatch: a token's rows on this node, experts, weights; combine: f32 [maxTokens][K]
 *   slots        [nodes][channels][rdmaRecvChunk, at least 8]  rows; a call divides its cell among its rings
 *   endings      [nodes]              epoch | code &lt;&lt; 32, what the code is about
 *   outbox       all above once more: what a network that reads registered memory sends from
 *   headerFlags  [nodes][2]           epoch
 *   recordFlags  [nodes][256]         epoch, by block of the sender
 *   tails        [nodes][rings]       epoch | rows put into the ring here &lt;&lt; 32
 *   heads        [nodes][rings]       epoch | rows taken from the ring there &lt;&lt; 32
 * </pre>
 *
 * @param headerBytes from a header to that of the other parity
 */
public record CudaRdmaLayout(
        Layout layout,
        long headerBytes,
        Region headers,
        Region records,
        Region slots,
        Region endings,
        Region outbox,
        Region headerFlags,
        Region recordFlags,
        Region tails,
        Region heads) {
    /** Most warps of a block that have a ring of their own. */
    static final int MAX_COPY_WARPS = 4;

    private static final long ENDING_BYTES = 3 * Long.BYTES;
    private static final int RECORD_ALIGNMENT = 16;

    /**
     * The layout for a buffer.
     *
     * @param envelope the larger of the buffer's configurations, see {@link Config#covering}
     * @param topology the group; the rank does not matter
     */
    public static CudaRdmaLayout of(Config envelope, NormalLimits limits, EpTopology topology) {
        int nodes = topology.isInternode() ? topology.numRdmaRanks() : 0;
        int channels = envelope.numChannels();
        int expertsPerRank = Math.ceilDiv(limits.maxExperts(), topology.numRanks());
        long headerBytes =
                Layout.alignToLine(
                        4L
                                * (HeaderWord.HEADER_WORDS
                                        + topology.numRanks()
                                        + topology.numNvlRanks() * expertsPerRank));
        long rowBytes = RowFormat.maxStrideBytes(limits.hidden());
        Layout.Builder builder = Layout.builder("CudaRdmaLayout");
        Region headers = builder.region("headers", headerBytes, nodes, 2);
        Region records =
                builder.region("records", recordBytes(limits.maxTopk()), nodes, limits.maxTokens());
        Region slots =
                builder.region(
                        "slots", rowBytes, nodes, channels, RingShape.slotsOfChannel(envelope));
        Region endings = builder.region("endings", ENDING_BYTES, nodes);
        Region outbox = builder.region("outbox", endings.end(), nodes == 0 ? 0 : 1);
        int rings = channels * RingShape.MOST_RINGS;
        Region headerFlags = builder.region("headerFlags", Long.BYTES, nodes, 2);
        Region recordFlags =
                builder.region("recordFlags", Long.BYTES, nodes, KernelConstants.MAX_BLOCKS);
        Region tails = builder.region("tails", Long.BYTES, nodes, rings);
        Region heads = builder.region("heads", Long.BYTES, nodes, rings);
        return new CudaRdmaLayout(
                builder.build(),
                headerBytes,
                headers,
                records,
                slots,
                endings,
                outbox,
                headerFlags,
                recordFlags,
                tails,
                heads);
    }

    /** Bytes of a record of {@code numTopk} selections; without any it holds the rows alone. */
    static int recordBytes(int numTopk) {
        int bytes = KernelConstants.NODE_ROWS_BYTES + 8 * numTopk;
        return Math.ceilDiv(bytes, RECORD_ALIGNMENT) * RECORD_ALIGNMENT;
    }
}
