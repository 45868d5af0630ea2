package io.deepep.normal;

import io.deepep.Config;
import io.deepep.EpTopology;
import io.deepep.NormalLimits;
import io.deepep.spi.Layout;
import io.deepep.spi.Region;
import io.deepep.spi.RowFormat;

/**
 * Each rank's NVL buffer in normal mode, written by the ranks of its node.
 *
 * <pre>
 *   headers        [2][R]      NormalHeader slot of each rank, by parity of the epoch
 *   dispatchRows   [capacity]  received rows in their final order: H elements, then (FP8) H/128 F32 scales
 *   recvMeta       [capacity]  srcIdx i32, topkIdx i32[K], topkWeights f32[K] of each received row
 *   dispatchFlags  [R]         epoch of the dispatch whose rows from this source are complete
 *   combineRows    [capacity]  combine input, BF16
 *   combineWeights [capacity]  combine input, f32[K]
 *   combineFlags   [R]         epoch of the combine in which this peer has read all it needs
 * </pre>
 *
 * A row of the source rank {@code s} lies after all rows of the ranks before it, in the order of
 * its tokens, so rows need no slots and no second copy.
 *
 * @param capacity rows
 */
public record NormalNvlLayout(
        Layout layout,
        int capacity,
        Region headers,
        Region dispatchRows,
        Region recvMeta,
        Region dispatchFlags,
        Region combineRows,
        Region combineWeights,
        Region combineFlags) {
    private static final long FLAG_BYTES = 8;

    /**
     * The layout for a buffer.
     *
     * @param envelope the larger of the buffer's configurations, see {@link
     *     io.deepep.Config#covering}; NVL rows go to their final place without queues, so its
     *     numbers do not change the size
     * @param topology the group; the rank does not matter
     */
    public static NormalNvlLayout of(Config envelope, NormalLimits limits, EpTopology topology) {
        int numRanks = topology.numRanks();
        int capacity = limits.recvCapacity(numRanks);
        long rowBytes = RowFormat.maxStrideBytes(limits.hidden());
        Layout.Builder builder = Layout.builder("NormalNvlLayout");
        Region headers =
                builder.region(
                        "headers",
                        NormalHeader.slotBytes(numRanks, limits.maxExperts()),
                        2,
                        numRanks);
        Region dispatchRows = builder.region("dispatchRows", rowBytes, capacity);
        Region recvMeta = builder.region("recvMeta", metaBytes(limits.maxTopk()), capacity);
        Region dispatchFlags = builder.region("dispatchFlags", FLAG_BYTES, numRanks);
        Region combineRows = builder.region("combineRows", rowBytes, capacity);
        Region combineWeights = builder.region("combineWeights", 4L * limits.maxTopk(), capacity);
        Region combineFlags = builder.region("combineFlags", FLAG_BYTES, numRanks);
        return new NormalNvlLayout(
                builder.build(),
                capacity,
                headers,
                dispatchRows,
                recvMeta,
                dispatchFlags,
                combineRows,
                combineWeights,
                combineFlags);
    }

    /** Bytes of a received row's source index, expert indices and weights. */
    public static long metaBytes(int numTopk) {
        return 4L + 8L * numTopk;
    }
}
