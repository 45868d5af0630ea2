package io.deepep.observe;

import io.deepep.EpTopology;

/**
 * What a run of an operation moved, as far as the host knows. Values that only the GPU knows, or
 * that a failed run leaves open, are {@link #UNKNOWN}, arrays null. Observers may keep this object,
 * but must not change its arrays.
 *
 * @param topology the rank that ran the operation, and its place in the group
 * @param format the format of rows, such as {@code bf16}, {@code fp8_e4m3} or {@code logfmt10}
 * @param rowBytes bytes of a row as it travels: elements and scales, without padding, indices or
 *     weights
 * @param numTokens T: this rank's tokens
 * @param numRecvTokens rows that this rank received. Dispatch: tokens (in low-latency mode,
 *     selections of this rank's experts). Combine: rows that were sent back to it
 * @param nvlinkBytes bytes that crossed NVLink for this rank's own tokens, out in a dispatch or
 *     back in a combine. Across nodes this includes what other ranks forwarded within their node.
 *     {@link #UNKNOWN} if only the GPU counts the rows
 * @param rdmaBytes bytes that crossed the network between nodes for this rank's own tokens, or
 *     {@link #UNKNOWN}
 * @param sentRows rows that this rank sent to each rank, itself included: [R]; null if unknown
 * @param receivedRows rows that this rank received from each rank, itself included: [R]; null if
 *     unknown. In low-latency mode on GPUs, a combine also counts rows of ranks masked since its
 *     dispatch
 * @param expertTokens tokens that a dispatch received for each local expert: [El], as in the result
 *     (normal mode: rounded up to the plan's alignment). Null for a combine, for a cached dispatch,
 *     and if unknown
 * @param waitNanos nanoseconds for which this rank waited for each rank with nothing else to do:
 *     [R]; null if the host does not know them. In normal mode on the host, a wait counts only for
 *     the first rank that is missing. On GPUs and in low-latency mode, it counts for every rank
 *     until that rank comes, so that the sum can exceed the duration of the call. In normal mode on
 *     GPUs, only two waits count: until the ranks begin the call, and until they end it after this
 *     rank has done its part
 */
@SuppressWarnings("ArrayRecordComponent") // never compared
public record CallFacts(
        EpTopology topology,
        String format,
        long rowBytes,
        long numTokens,
        long numRecvTokens,
        long nvlinkBytes,
        long rdmaBytes,
        long[] sentRows,
        long[] receivedRows,
        int[] expertTokens,
        long[] waitNanos) {
    /** Value that stands for a number that the host does not know. */
    public static final long UNKNOWN = -1;
}
