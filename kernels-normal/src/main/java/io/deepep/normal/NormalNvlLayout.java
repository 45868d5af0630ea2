package io.deepep.normal;

import io.deepep.EpTopology;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.spi.Layout;
import io.deepep.spi.Region;
import io.deepep.spi.RowFormat;

/**
 * Each rank's NVL buffer in normal mode, written and read by the ranks of its node.
 *
 * <pre>
 *   headers        [2][R]      {@link HeaderWord}s, then one word per own expert, by parity of the epoch and source
 *   metaFlags      [N]         word of the dispatch whose metadata from this rank is complete, a line each
 *   doneFlags      [N]         word of the call this rank has left: its code; then what the code is about; a line each
 *   stagedFlags    [N][T]      word of the combine whose batch of rows this rank has brought here or into its heap
 *   recvRows       [capacity]  received rows in their final order, in the call's {@link RowFormat}
 *   recvTopk       [capacity]  i32 [K] local expert or -1
 *   recvWeights    [capacity]  f32 [K], 0 where not local
 *   combineRows    [capacity]  combine input; where ranks push it, that of their peers for this rank
 *   combineWeights [capacity]  f32 [K]
 * </pre>
 *
 * The row of a token of source rank {@code s} lies after all rows of the ranks before it, in the
 * order of its tokens, so rows need no slots and no second copy. Rows and metadata of a call lie as
 * dense as its own hidden size and K allow. {@code R} counts all ranks, {@code N} those of the
 * node.
 */
public record NormalNvlLayout(
        Layout layout,
        int capacity,
        Region headers,
        Region metaFlags,
        Region doneFlags,
        Region stagedFlags,
        Region recvRows,
        Region recvTopk,
        Region recvWeights,
        Region combineRows,
        Region combineWeights) {
    /**
     * Whether a tensor lies in the combine region of the heap at that address, all or in part. One
     * without rows lies where it begins, as those of other ranks do that have rows.
     */
    boolean combineRegionHas(long heap, Tensor tensor) {
        long begin = heap + combineRows.offset();
        long end = heap + combineRows.end();
        return tensor.address() < end
                && tensor.address() + Math.max(1, tensor.extentBytes()) > begin;
    }

    /** The layout for a buffer; the topology's rank does not matter. */
    public static NormalNvlLayout of(NormalLimits limits, EpTopology topology) {
        int numRanks = topology.numRanks();
        int capacity = limits.recvCapacity(numRanks);
        long numWords =
                (long) HeaderWord.firstExpert(topology)
                        + Math.ceilDiv(limits.maxExperts(), numRanks);
        Layout.Builder builder = Layout.builder("NormalNvlLayout");
        Region headers =
                builder.region("headers", Layout.alignToLine(Long.BYTES * numWords), 2, numRanks);
        int onNode = topology.numNvlRanks();
        Region metaFlags = builder.region("metaFlags", Layout.LINE_BYTES, onNode);
        Region doneFlags = builder.region("doneFlags", Layout.LINE_BYTES, onNode);
        Region stagedFlags = builder.region("stagedFlags", Long.BYTES, onNode, limits.maxTokens());
        Region recvRows =
                builder.region("recvRows", RowFormat.maxStrideBytes(limits.hidden()), capacity);
        long topkBytes = (long) Integer.BYTES * limits.maxTopk();
        Region recvTopk = builder.region("recvTopk", topkBytes, capacity);
        Region recvWeights = builder.region("recvWeights", topkBytes, capacity);
        Region combineRows =
                builder.region(
                        "combineRows", RowFormat.bf16(limits.hidden()).strideBytes(), capacity);
        Region combineWeights = builder.region("combineWeights", topkBytes, capacity);
        return new NormalNvlLayout(
                builder.build(),
                capacity,
                headers,
                metaFlags,
                doneFlags,
                stagedFlags,
                recvRows,
                recvTopk,
                recvWeights,
                combineRows,
                combineWeights);
    }
}
