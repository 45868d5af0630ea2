package io.deepep.normal.cuda;

import io.deepep.EpTopology;
import io.deepep.NormalLimits;
import io.deepep.normal.HeaderWord;
import io.deepep.spi.Layout;
import io.deepep.spi.Region;
import io.deepep.spi.RowFormat;

/**
 * Each rank's NVL buffer on a GPU, written and read by the ranks of its node.
 *
 * <pre>
 *   headers        [2][R]      32 words (several nodes: and one per rank), then one per own expert, each epoch | value &lt;&lt;
 *                              32, by parity of the epoch and source
 *   metaFlags      [R]         epoch of the dispatch whose metadata from this source is complete, a line each
 *   doneFlags      [R]         epoch | code &lt;&lt; 32 of the call this rank has left, and what the code is about, a line each
 *   stagedFlags    [R][T]      epoch of the combine whose batch of rows this stager has brought here or into its heap
 *   recvRows       [capacity]  received rows in their final order
 *   recvSrc        [capacity]  i32 index of the token at its source
 *   recvTopk       [capacity]  i32 [K] local expert or -1
 *   recvWeights    [capacity]  f32 [K]
 *   combineRows    [capacity]  combine input, BF16; where ranks push it, that of their peers for this rank
 *   combineWeights [capacity]  f32 [K]
 * </pre>
 */
public record CudaNvlLayout(
        Layout layout,
        int capacity,
        Region headers,
        Region metaFlags,
        Region doneFlags,
        Region stagedFlags,
        Region recvRows,
        Region recvSrc,
        Region recvTopk,
        Region recvWeights,
        Region combineRows,
        Region combineWeights) {
    /** The layout for a buffer; the topology's rank does not matter. */
    public static CudaNvlLayout of(NormalLimits limits, EpTopology topology) {
        int numRanks = topology.numRanks();
        int capacity = limits.recvCapacity(numRanks);
        long headerBytes =
                Layout.alignToLine(
                        8L
                                * (HeaderWord.HEADER_WORDS
                                        + (topology.isInternode() ? numRanks : 0)
                                        + Math.ceilDiv(limits.maxExperts(), numRanks)));
        long bf16Row = RowFormat.bf16(limits.hidden()).strideBytes();
        long anyRow = RowFormat.maxStrideBytes(limits.hidden());
        Layout.Builder builder = Layout.builder("CudaNvlLayout");
        Region headers = builder.region("headers", headerBytes, 2, numRanks);
        Region metaFlags = builder.region("metaFlags", Layout.LINE_BYTES, numRanks);
        Region doneFlags = builder.region("doneFlags", Layout.LINE_BYTES, numRanks);
        Region stagedFlags =
                builder.region("stagedFlags", 8, numRanks, Math.max(1, limits.maxTokens()));
        Region recvRows = builder.region("recvRows", anyRow, capacity);
        Region recvSrc = builder.region("recvSrc", 4, capacity);
        Region recvTopk = builder.region("recvTopk", 4L * limits.maxTopk(), capacity);
        Region recvWeights = builder.region("recvWeights", 4L * limits.maxTopk(), capacity);
        Region combineRows = builder.region("combineRows", bf16Row, capacity);
        Region combineWeights = builder.region("combineWeights", 4L * limits.maxTopk(), capacity);
        return new CudaNvlLayout(
                builder.build(),
                capacity,
                headers,
                metaFlags,
                doneFlags,
                stagedFlags,
                recvRows,
                recvSrc,
                recvTopk,
                recvWeights,
                combineRows,
                combineWeights);
    }
}
