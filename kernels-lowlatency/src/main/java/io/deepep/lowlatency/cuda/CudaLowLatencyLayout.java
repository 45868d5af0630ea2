package io.deepep.lowlatency.cuda;

import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.LowLatencyLimits;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.spi.Layout;
import io.deepep.spi.Region;

/**
 * Low-latency mode's part of each rank's symmetric memory on GPUs. Every rank stores straight into
 * every other's, or puts there by a network; nobody reads a peer's.
 *
 * <pre>
 *   acks             [R]        the epochs whose slots that rank has freed, by kind and parity: 4 x u32
 *   dispatchHeaders  [2][R]     what the source announces, words of epoch | value &lt;&lt; 32, by parity of the epoch
 *   dispatchFlags    [2][R][T]  epoch | (number of the row's first selection, token) &lt;&lt; 32 of a complete row
 *   combineHeaders   [2][R]     what the sender announces, likewise words
 *   combineFlags     [2][T][parts]  u32, or across nodes u64, [R][K]: the epoch when that part of a source's row is complete
 *   dispatchRows     [2][R][T]  i-th token the source sends here: elements, scales, u32 selection[K], f32 weight[K]
 *   combineRows      [2][R][T*K]  the source's result of selection k of token t, BF16 or LogFMT
 * </pre>
 *
 * What combine brings has a slot and a flag for every source that could send it, though one alone
 * does: so what a rank stores late that was given up is never taken for somebody else's.
 *
 * <p>A selection is {@code local expert << 15 | order among its source's selections of that
 * expert}, or all ones where selection k is not an expert of this rank. The sections {@code
 * lowlatency_*.cu} and the module's README say who waits for what.
 *
 * @param headersEnd bytes that must be zero before the first call: headers and flags
 */
public record CudaLowLatencyLayout(
        Layout layout,
        long headersEnd,
        Region acks,
        Region dispatchHeaders,
        Region dispatchFlags,
        Region combineHeaders,
        Region combineFlags,
        Region dispatchRows,
        Region combineRows) {
    private static final int KINDS_AND_PARITIES = 4;
    private static final int PARITIES = 2;
    private static final long VECTOR_BYTES = 16;

    /** Kernels count places among the rows of combine in 32 bits and units of 8 bytes. */
    private static final long MOST_COMBINE_BYTES = 8L << Integer.SIZE;

    /** The layout for a buffer; the topology's rank does not matter. */
    public static CudaLowLatencyLayout of(LowLatencyLimits limits, EpTopology topology) {
        int numRanks = topology.numRanks();
        int numTokens = limits.maxTokens();
        int numTopk = limits.maxTopk();
        long bf16Bytes = (long) DType.BF16.sizeBytes() * limits.hidden();
        long numParts = Math.ceilDiv(limits.hidden(), LowLatencyStructs.PART_CHANNELS);
        long longestRow = Math.max(bf16Bytes, selectionsOffset(limits.hidden(), true));
        Layout.Builder builder = Layout.builder("CudaLowLatencyLayout");
        Region acks = builder.region("acks", (long) Integer.BYTES * KINDS_AND_PARITIES, numRanks);
        Region dispatchHeaders =
                builder.region(
                        "dispatchHeaders",
                        Layout.alignToLine(Long.BYTES * headerWords(limits, numRanks)),
                        PARITIES,
                        numRanks);
        Region dispatchFlags =
                builder.region("dispatchFlags", Long.BYTES, PARITIES, numRanks, numTokens);
        Region combineHeaders =
                builder.region(
                        "combineHeaders",
                        (long) Long.BYTES * LowLatencyStructs.COMBINE_HEADER_WORDS,
                        PARITIES,
                        numRanks);
        // A network sets flags of 64 bits.
        int flagBytes = topology.isInternode() ? Long.BYTES : Integer.BYTES;
        Region combineFlags =
                builder.region(
                        "combineFlags",
                        (long) flagBytes * numRanks * numTopk,
                        PARITIES,
                        numTokens,
                        numParts);
        long headersEnd = Layout.alignToLine(combineFlags.end());
        Region dispatchRows =
                builder.region(
                        "dispatchRows",
                        Layout.alignToLine(
                                weightsOffset(longestRow, numTopk) + (long) Float.BYTES * numTopk),
                        PARITIES,
                        numRanks,
                        numTokens);
        Region combineRows =
                builder.region(
                        "combineRows",
                        Layout.alignToLine(bf16Bytes),
                        PARITIES,
                        numRanks,
                        (long) numTokens * numTopk);
        if (combineRows.stride0() >= MOST_COMBINE_BYTES) {
            throw new IllegalArgumentException(
                    limits
                            + " needs "
                            + combineRows.stride0()
                            + " bytes for what combine brings from "
                            + numRanks
                            + " ranks, more than "
                            + MOST_COMBINE_BYTES
                            + "; lower maxTokens or maxTopk");
        }
        return new CudaLowLatencyLayout(
                builder.build(),
                headersEnd,
                acks,
                dispatchHeaders,
                dispatchFlags,
                combineHeaders,
                combineFlags,
                dispatchRows,
                combineRows);
    }

    /**
     * Bytes of the outbox of a rank that reaches others by a network: it is divided as a heap is.
     */
    public long outboxBytes() {
        return layout.sizeBytes();
    }

    /** Fixed words, the receiver's experts filled up to an even number, all experts likewise. */
    private static long headerWords(LowLatencyLimits limits, int numRanks) {
        return LowLatencyStructs.DISPATCH_HEADER_WORDS
                + even(limits.numLocalExperts(numRanks))
                + even(limits.numExperts());
    }

    private static long even(int number) {
        return Math.ceilDiv(number, 2) * 2L;
    }

    /** Where a row's weights begin, if it has any: after its selections. */
    static long weightsOffset(long selectionsOffset, int numTopk) {
        return selectionsOffset + (long) Integer.BYTES * numTopk;
    }

    /** Where a dispatched row's selections begin: after its elements and scales. */
    static long selectionsOffset(int hidden, boolean fp8) {
        if (!fp8) {
            return (long) DType.BF16.sizeBytes() * hidden;
        }
        long rowBytes = hidden + LowLatencyLayout.scaleBytes(hidden);
        return Math.ceilDiv(rowBytes, VECTOR_BYTES) * VECTOR_BYTES;
    }
}
