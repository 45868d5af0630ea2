package io.deepep.normal;

import io.deepep.Config;
import io.deepep.EpTopology;
import io.deepep.NormalLimits;
import io.deepep.spi.Layout;
import io.deepep.spi.Region;
import io.deepep.spi.RowFormat;

/**
 * Each rank's RDMA buffer in normal mode; empty when the group is one node. Headers and endings
 * have a cell for each rank, and rows one for each node, written by the rank with the same nvlRank
 * there, and spare ones: see {@link Rails}.
 *
 * <pre>
 *   headers      [R][2]               32 + R + experts per node words i32 by parity of the epoch, relayed to the node
 *   records      [cells][maxTokens]   dispatch: a token's rows on this node, experts, weights; combine: f32 [maxTokens][K]
 *   slots        [cells][channels][rdmaRecvChunk, at least 6]  rows, and a dispatch's places of the row on this node;
 *                                     a call divides its cell among its rings
 *   endings      [R]                  as a done flag
 *   outbox       all above once more: what a network that reads registered memory sends from
 *   headerFlags  [R][2]               epoch
 *   recordFlags  [cells][256]         epoch, by block of the sender
 *   tails        [cells][rings]       epoch | rows put into the ring here &lt;&lt; 32
 *   totals       [cells][rings]       dispatch: epoch | rows put in all &lt;&lt; 32, once that is known
 *   heads        [cells][rings]       epoch | rows taken from the ring there &lt;&lt; 32
 * </pre>
 *
 * @param headerBytes from a header to that of the other parity
 */
public record NormalRdmaLayout(
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
        Region totals,
        Region heads) {
    /** Parts at most that a rank's tokens are divided into, each with its own record flag. */
    public static final int MAX_BLOCKS = 256;

    private static final long ENDING_BYTES = (long) DoneWord.values().length * Long.BYTES;
    private static final int RECORD_ALIGNMENT = 16;
    private static final int ROWS_OF_VECTOR = RECORD_ALIGNMENT / Integer.BYTES;

    /**
     * The layout for a buffer.
     *
     * @param envelope the larger of the buffer's configurations, see {@link Config#covering}
     * @param topology the group; the rank does not matter
     */
    public static NormalRdmaLayout of(Config envelope, NormalLimits limits, EpTopology topology) {
        int ranks = topology.isInternode() ? topology.numRanks() : 0;
        int cells = Rails.numCells(topology);
        int channels = envelope.numChannels();
        int expertsPerRank = Math.ceilDiv(limits.maxExperts(), topology.numRanks());
        long numWords =
                (long) HeaderWord.HEADER_WORDS
                        + topology.numRanks()
                        + (long) topology.numNvlRanks() * expertsPerRank;
        long headerBytes = Layout.alignToLine(Integer.BYTES * numWords);
        long slotBytes = slotBytes(topology, RowFormat.maxStrideBytes(limits.hidden()));
        Layout.Builder builder = Layout.builder("NormalRdmaLayout");
        Region headers = builder.region("headers", headerBytes, ranks, 2);
        Region records =
                builder.region(
                        "records",
                        recordBytes(topology, limits.maxTopk()),
                        cells,
                        limits.maxTokens());
        Region slots =
                builder.region(
                        "slots", slotBytes, cells, channels, RingShape.slotsOfChannel(envelope));
        Region endings = builder.region("endings", ENDING_BYTES, ranks);
        Region outbox = builder.region("outbox", endings.end(), ranks == 0 ? 0 : 1);
        long rings = (long) channels * RingShape.MOST_RINGS;
        Region headerFlags = builder.region("headerFlags", Long.BYTES, ranks, 2);
        Region recordFlags = builder.region("recordFlags", Long.BYTES, cells, MAX_BLOCKS);
        Region tails = builder.region("tails", Long.BYTES, cells, rings);
        Region totals = builder.region("totals", Long.BYTES, cells, rings);
        Region heads = builder.region("heads", Long.BYTES, cells, rings);
        return new NormalRdmaLayout(
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
                totals,
                heads);
    }

    /** Room for a row of a dispatch, {@code rowBytes} with its padding, and its places. */
    public static long slotBytes(EpTopology topology, long rowBytes) {
        return Layout.alignToLine(sentBytes(topology, rowBytes));
    }

    /** What of that crosses a network. */
    public static long sentBytes(EpTopology topology, long rowBytes) {
        return rowBytes + (long) Integer.BYTES * nodeRows(topology);
    }

    /**
     * Rows that a record has room for, -1 where the token does not go: {@code NodeRows}. One for
     * each rank of a node, and what fills them up to so many that kernels load them as vectors.
     */
    public static int nodeRows(EpTopology topology) {
        int vectors = Math.ceilDiv(topology.numNvlRanks(), ROWS_OF_VECTOR);
        return Math.max(HeaderWord.NARROW_RANKS, vectors * ROWS_OF_VECTOR);
    }

    /** Bytes of a record of {@code numTopk} selections; without any it holds the rows alone. */
    public static int recordBytes(EpTopology topology, int numTopk) {
        int bytes = Integer.BYTES * nodeRows(topology) + 8 * numTopk;
        return Math.ceilDiv(bytes, RECORD_ALIGNMENT) * RECORD_ALIGNMENT;
    }
}
