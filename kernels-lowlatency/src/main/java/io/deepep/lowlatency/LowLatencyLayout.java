package io.deepep.lowlatency;

import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.Fp8E4m3;
import io.deepep.LowLatencyLimits;
import io.deepep.spi.Layout;
import io.deepep.spi.Region;

/**
 * Low-latency mode's part of each rank's RDMA buffer. Every rank writes into every other's by puts,
 * nobody reads a peer's.
 *
 * <pre>
 *   dispatchHeaders [2][R]      what the source announces, see {@link LowLatencyHeader}, by parity of the epoch
 *   dispatchRows    [2][R][T]   i-th token the source sends here: row, then on its own lines its selection, see below
 *   dispatchFlags   [2][R]      epoch of the dispatch whose header and rows from this source are complete
 *   dispatchAcks    [2][R]      epoch of the dispatch of which that rank has taken all rows from here
 *   combineRows     [2][R][T*K] that rank's result of selection k of token t, BF16 or LogFMT
 *   combineHeaders  [2][R]      what the rank announces, see {@link LowLatencyCombineHeader}
 *   combineFlags    [2][R]      epoch of the combine whose header and rows from this rank are complete
 *   combineAcks     [2][R]      epoch of the combine of which that rank has summed all rows from here
 * </pre>
 *
 * A selection is {@code i32 token, i32 localExpert[K], f32 weight[K]} with -1 where selection k is
 * not an expert of this rank, and weights only if the dispatch was given them. Epochs count up for
 * ever; flags are never cleared, and slots of one parity are free again once the acknowledgement of
 * two epochs ago has come. Acknowledgements have a parity too: with hooks, the later of two in
 * flight may be received first.
 */
public record LowLatencyLayout(
        Layout layout,
        int maxTopk,
        long selectionOffset,
        Region dispatchHeaders,
        Region dispatchRows,
        Region dispatchFlags,
        Region dispatchAcks,
        Region combineRows,
        Region combineHeaders,
        Region combineFlags,
        Region combineAcks) {
    private static final long FLAG_BYTES = 8;
    private static final long PARITIES = 2;

    /** The layout for a buffer; the topology's rank does not matter. */
    public static LowLatencyLayout of(LowLatencyLimits limits, EpTopology topology) {
        int numRanks = topology.numRanks();
        long rowBytes =
                Layout.alignToLine(
                        Math.max(
                                (long) DType.BF16.sizeBytes() * limits.hidden(),
                                limits.hidden() + scaleBytes(limits.hidden())));
        long selectionBytes = Layout.alignToLine(4L + (4L + 4L) * limits.maxTopk());
        long headerBytes = LowLatencyHeader.sizeBytes(limits.numExperts());
        Layout.Builder builder = Layout.builder("LowLatencyLayout");
        Region headers =
                builder.region(
                        "dispatchHeaders", Layout.alignToLine(headerBytes), PARITIES, numRanks);
        Region rows =
                builder.region(
                        "dispatchRows",
                        rowBytes + selectionBytes,
                        PARITIES,
                        numRanks,
                        limits.maxTokens());
        Region flags = builder.region("dispatchFlags", FLAG_BYTES, PARITIES, numRanks);
        Region acks = builder.region("dispatchAcks", FLAG_BYTES, PARITIES, numRanks);
        Region combineRows =
                builder.region(
                        "combineRows",
                        rowBytes,
                        PARITIES,
                        numRanks,
                        (long) limits.maxTokens() * limits.maxTopk());
        Region combineHeaders =
                builder.region(
                        "combineHeaders", LowLatencyCombineHeader.SIZE_BYTES, PARITIES, numRanks);
        Region combineFlags = builder.region("combineFlags", FLAG_BYTES, PARITIES, numRanks);
        Region combineAcks = builder.region("combineAcks", FLAG_BYTES, PARITIES, numRanks);
        return new LowLatencyLayout(
                builder.build(),
                limits.maxTopk(),
                rowBytes,
                headers,
                rows,
                flags,
                acks,
                combineRows,
                combineHeaders,
                combineFlags,
                combineAcks);
    }

    /**
     * Where, at a token's owner, {@code sender} puts its result of a selection: in a slot of its
     * own, so that what it stores late, when it was given up, is never taken for another's.
     */
    public long combineRow(int parity, int sender, int token, int k) {
        return combineRows.at(parity, sender, (long) token * maxTopk + k);
    }

    /** Bytes of the F32 scales of an FP8 row; they follow its elements. */
    public static long scaleBytes(int hidden) {
        return 4L * (hidden / Fp8E4m3.CHANNELS_PER_SCALE);
    }
}
