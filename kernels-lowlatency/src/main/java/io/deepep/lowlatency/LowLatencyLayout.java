package io.deepep.lowlatency;

import io.deepep.CombineFormat;
import io.deepep.EpTopology;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.spi.Layout;
import io.deepep.spi.Region;
import io.deepep.spi.RowFormat;

/**
 * Low-latency mode's part of each rank's RDMA buffer, on the host and on GPUs. Every rank stores
 * straight into every other's, or puts there by a network; nobody reads a peer's.
 *
 * <pre>
 *   acks             [R]           the epochs whose slots that rank has freed, by kind and parity: 4 x u32
 *   dispatchHeaders  [2][R]        what the source announces, {@link DispatchWord}s, by parity of the epoch
 *   dispatchFlags    [2][R][T]     that a row has come, {@link DispatchFlagWord}s[K] of its selections; where rows come in
 *                                  batches, words of u64
 *   combineHeaders   [2][R]        what the sender announces, {@link CombineWord}s
 *   combineFlags     [2][T][parts] u32, or across nodes u64, [R][K]: the epoch when that part of a source's row has come
 *   combinePacks     [2][R][P]     the same for an owner with few tokens, in packs that carry the epoch; GPUs of one node
 *   dispatchRows     [2][R][T]     a token of the source: elements, scales; where rows come in batches, the i-th that it
 *                                  sends here, with u32 selection[K], u32 tag, f32 weight[K]
 *   combineRows      [2][R][T*K]   the source's result of selection k of token t, in the {@link io.deepep.CombineFormat};
 *                                  where rows come in batches, the i-th of the results that the source has
 * </pre>
 *
 * What combine brings has a slot and a flag for every source that could send it, though one alone
 * does: so what a rank stores late that was given up is never taken for somebody else's. Packs have
 * memory of their own, in which nothing else lies that could be taken for an epoch. P is {@link
 * #numPacked}, and 0 on several nodes. The pages on low latency in {@code docs/} say who waits for
 * what.
 *
 * @param headersEnd bytes that must be zero before the first call: headers, flags and packs
 */
public record LowLatencyLayout(
        Layout layout,
        long headersEnd,
        int maxTopk,
        int flagBytes,
        Region acks,
        Region dispatchHeaders,
        Region dispatchFlags,
        Region combineHeaders,
        Region combineFlags,
        Region combinePacks,
        Region dispatchRows,
        Region combineRows) {
    /** Channels of a combined row that have a flag together. */
    public static final int PART_CHANNELS = 1792;

    /** The most tokens of which results come in packs: the result of selection k at [token][k]. */
    public static final int PACKED_TOKENS = 16;

    /** The same of a pre-reduced combine, in which the sum of a rank's results is at [token]. */
    public static final int PACKED_SUMS = 64;

    /** Rows of a dispatch that cross a network by one put. */
    public static final int DISPATCH_BATCH_ROWS = 16;

    /** Ranks of a node that has kernels of its own. */
    public static final int SMALL_NODE_RANKS = 8;

    /**
     * Channels of a unit of packs, of which each lane of a warp has one; and its bytes. In FP8, a
     * unit has more.
     */
    public static final int UNIT_CHANNELS = 192;

    public static final int UNIT_BYTES = 512;

    private static final int KINDS = 2;
    private static final int PARITIES = 2;

    /** Kernels count places among the rows of combine in 32 bits and units of 8 bytes. */
    private static final long MOST_COMBINE_BYTES = 8L << Integer.SIZE;

    /**
     * Whether the group is one node that is small enough for kernels of its own, which have packs
     * and flags of 32 bits. All others use those of several nodes.
     */
    public static boolean isSmallNode(EpTopology topology) {
        return !topology.isInternode() && topology.numRanks() <= SMALL_NODE_RANKS;
    }

    /** The layout for a buffer; the topology's rank does not matter. */
    public static LowLatencyLayout of(LowLatencyLimits limits, EpTopology topology) {
        int numRanks = topology.numRanks();
        int numTokens = limits.maxTokens();
        int numTopk = limits.maxTopk();
        int hidden = limits.hidden();
        Layout.Builder builder = Layout.builder("LowLatencyLayout");
        Region acks = builder.region("acks", (long) Integer.BYTES * KINDS * PARITIES, numRanks);
        Region dispatchHeaders =
                builder.region(
                        "dispatchHeaders",
                        Layout.alignToLine(Long.BYTES * headerWords(limits, numRanks)),
                        PARITIES,
                        numRanks);
        Region dispatchFlags =
                builder.region(
                        "dispatchFlags", dispatchFlagBytes(numTopk), PARITIES, numRanks, numTokens);
        Region combineHeaders =
                builder.region(
                        "combineHeaders",
                        (long) Long.BYTES * CombineWord.COUNT,
                        PARITIES,
                        numRanks);
        // A network sets flags of 64 bits.
        int flagBytes = isSmallNode(topology) ? Integer.BYTES : Long.BYTES;
        Region combineFlags =
                builder.region(
                        "combineFlags",
                        (long) flagBytes * numRanks * numTopk,
                        PARITIES,
                        numTokens,
                        numParts(hidden));
        Region combinePacks =
                builder.region(
                        "combinePacks",
                        (long) Math.ceilDiv(hidden, UNIT_CHANNELS) * UNIT_BYTES,
                        PARITIES,
                        numRanks,
                        isSmallNode(topology) ? numPacked(limits) : 0);
        long headersEnd = Layout.alignToLine(combinePacks.end());
        Region dispatchRows =
                builder.region(
                        "dispatchRows",
                        Math.max(
                                RowFormat.bf16(hidden).strideBytes(numTopk),
                                RowFormat.fp8(hidden).strideBytes(numTopk)),
                        PARITIES,
                        numRanks,
                        numTokens);
        Region combineRows =
                builder.region(
                        "combineRows",
                        RowFormat.bf16(hidden).strideBytes(),
                        PARITIES,
                        numRanks,
                        (long) numTokens * numTopk);
        if (combineRows.stride0() >= MOST_COMBINE_BYTES) {
            throw new IllegalArgumentException(
                    ("%s needs %s bytes for the rows of a combine from %s ranks, more than %s; lower maxTokens"
                                    + " or maxTopk")
                            .formatted(
                                    limits, combineRows.stride0(), numRanks, MOST_COMBINE_BYTES));
        }
        return new LowLatencyLayout(
                builder.build(),
                headersEnd,
                numTopk,
                flagBytes,
                acks,
                dispatchHeaders,
                dispatchFlags,
                combineHeaders,
                combineFlags,
                combinePacks,
                dispatchRows,
                combineRows);
    }

    /** Results in packs that a source has room for. */
    public static int numPacked(LowLatencyLimits limits) {
        return Math.max(
                Math.min(limits.maxTokens(), PACKED_TOKENS) * limits.maxTopk(),
                Math.min(limits.maxTokens(), PACKED_SUMS));
    }

    /** Words of a dispatch's header: an even number, because kernels store two at once. */
    public static int dispatchWords(LowLatencyLimits limits, int numRanks) {
        return Math.toIntExact(headerWords(limits, numRanks));
    }

    private static long headerWords(LowLatencyLimits limits, int numRanks) {
        return DispatchWord.COUNT + Math.ceilDiv(limits.numLocalExperts(numRanks), 2) * 2L;
    }

    /** Bytes of the flag of a dispatched row, which says something of each selection. */
    public static long dispatchFlagBytes(int numTopk) {
        return (long) DispatchFlagWord.BYTES * numTopk;
    }

    /** Bytes of a dispatched row, with its flag, to a rank whose memory is mapped. */
    public static long dispatchedBytes(RowFormat rows, int numTopk) {
        return rows.selectionsOffset() + dispatchFlagBytes(numTopk);
    }

    /** Where the flag of the i-th row from a source lies. */
    public long dispatchFlag(int parity, int source, int i, int numTopk) {
        return dispatchFlags.at(parity, source, 0) + i * dispatchFlagBytes(numTopk);
    }

    /** How a dispatch's rows lie in their slots. */
    public static RowFormat rows(LowLatencyFormat format, int hidden) {
        return format.isFp8() ? RowFormat.fp8(hidden) : RowFormat.bf16(hidden);
    }

    /**
     * Where the row of a source's token lies, or of batches the i-th. Rows are as close together as
     * their format allows, on lines, and so one range for whoever puts several.
     *
     * @param numTopk of the dispatch, at most the limit
     */
    public long dispatchRow(int parity, int source, int i, RowFormat rows, int numTopk) {
        return dispatchRows.at(parity, source, 0) + i * rows.strideBytes(numTopk);
    }

    /** Bytes from one result to the next on GPUs, as the sender casts them: on lines. */
    public static long combineRowStride(CombineFormat format, int hidden) {
        return Layout.alignToLine(
                switch (format) {
                    case BF16 -> RowFormat.bf16(hidden).dataBytes();
                    case FP8 -> Fp8Parts.rowBytes(hidden);
                    case LOGFMT -> LogFmt10.rowBytes(hidden);
                });
    }

    /** The headers of a kind of call. */
    public Region headers(Kind kind) {
        return kind == Kind.DISPATCH ? dispatchHeaders : combineHeaders;
    }

    /** The acknowledgements of a kind by a rank: two u32, by parity. */
    public long ack(int source, Kind kind) {
        return acks.at(source) + (long) Integer.BYTES * PARITIES * kind.value();
    }

    /** A word of the header from a source. */
    public long word(Kind kind, int parity, int source, int word) {
        return headers(kind).at(parity, source) + (long) Long.BYTES * word;
    }

    /** The flag of a part of what a source brings for selection k of a token. */
    public long combineFlag(int parity, int token, int part, int source, int k) {
        return combineFlags.at(parity, token, part) + (long) flagBytes * (source * maxTopk + k);
    }

    /** Where it lies. */
    public long combineRow(int parity, int source, int token, int k) {
        return combineRows.at(parity, source, (long) token * maxTopk + k);
    }

    /** Parts of a combined row that have flags of their own. */
    public static int numParts(int hidden) {
        return Math.ceilDiv(hidden, PART_CHANNELS);
    }
}
