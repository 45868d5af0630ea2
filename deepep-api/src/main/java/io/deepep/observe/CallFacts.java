package io.deepep.observe;

import io.deepep.EpTopology;

/**
 * What a run of an operation moved, as far as the host knows. Values that only the GPU knows are
 * {@link #UNKNOWN}, arrays null. Observers may keep this object, but must not change its arrays.
 */
public interface CallFacts {
    /** Value that stands for a number that the host does not know. */
    long UNKNOWN = -1;

    /** The rank that ran the operation, and its place in the group. */
    EpTopology topology();

    /** The format of rows, such as {@code bf16}, {@code fp8_e4m3} or {@code logfmt10}. */
    String format();

    /** Bytes of a row as it travels: elements and scales, without padding, indices or weights. */
    long rowBytes();

    /** T: this rank's tokens. */
    long numTokens();

    /**
     * Rows that this rank received. Dispatch: tokens (in low-latency mode, selections of this
     * rank's experts). Combine: rows that were sent back to it.
     */
    long numRecvTokens();

    /**
     * Bytes that crossed NVLink for this rank's own tokens, out in a dispatch or back in a combine.
     * Across nodes this includes what other ranks forwarded within their node. {@link #UNKNOWN} if
     * only the GPU counts the rows.
     */
    long nvlinkBytes();

    /**
     * Bytes that crossed the network between nodes for this rank's own tokens, or {@link #UNKNOWN}.
     */
    long rdmaBytes();

    /** Rows that this rank sent to each rank, itself included: [R]; null if unknown. */
    long[] sentRows();

    /** Rows that this rank received from each rank, itself included: [R]; null if unknown. */
    long[] receivedRows();

    /**
     * Tokens that a dispatch received for each local expert: [El], as in the result (normal mode:
     * rounded up to the plan's alignment). Null for a combine, for a cached dispatch, and if
     * unknown.
     */
    int[] expertTokens();

    /**
     * Nanoseconds for which this rank waited for each rank with nothing else to do: [R]; null if
     * the host does not know them. In normal mode on the host, a wait counts only for the first
     * rank that is missing. On GPUs and in low-latency mode, it counts for every rank until that
     * rank comes, so that the sum can exceed the duration of the call. In normal mode on GPUs, only
     * two waits count: until the ranks begin the call, and until they end it after this rank has
     * done its part.
     */
    long[] waitNanos();
}
