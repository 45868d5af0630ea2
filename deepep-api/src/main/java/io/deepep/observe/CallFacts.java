package io.deepep.observe;

import io.deepep.EpTopology;

/**
 * What one run of an operation moved, as far as the host knows. Values that it cannot know without
 * asking the GPU are {@link #UNKNOWN}, or null for arrays. Observers may keep this object but must
 * not change its arrays.
 */
public interface CallFacts {
    /** Stands for a number that the host does not know. */
    long UNKNOWN = -1;

    /** The rank that ran the operation, and its group. */
    EpTopology topology();

    /** The format of rows, such as {@code bf16}, {@code fp8_e4m3} or {@code logfmt10}. */
    String format();

    /** Bytes of a row as it travels: elements and scales, without padding, indices and weights. */
    long rowBytes();

    /** T: this rank's tokens. */
    long numTokens();

    /**
     * Rows that arrived at this rank. Dispatch: received tokens (low latency: selections of this
     * rank's experts). Combine: rows that came back.
     */
    long numRecvTokens();

    /**
     * Bytes that this rank's own tokens put on NVLink, on their way out in a dispatch and on their
     * way back in a combine; across nodes that includes what other ranks forward within their node.
     * {@link #UNKNOWN} if only the GPU counts the rows.
     */
    long nvlinkBytes();

    /** The same between nodes. */
    long rdmaBytes();

    /** [R] Rows that went from this rank to each rank, its own included; null if unknown. */
    long[] sentRows();

    /** [R] Rows that came from each rank, its own included; null if unknown. */
    long[] receivedRows();

    /**
     * [El] Tokens that a dispatch brought for each local expert, as the result counts them (normal
     * mode: rounded up to the plan's alignment); null in a combine, in a cached dispatch, and where
     * unknown.
     */
    int[] expertTokens();

    /**
     * [R] Nanoseconds for which this rank could only wait while the rank was missing; null if the
     * host does not know them. In normal mode on the host, a wait counts for the first rank that is
     * missing. On GPUs and in low-latency mode, it counts for every rank until it comes, so the sum
     * can exceed the call. In normal mode on GPUs, these are the waits for ranks to begin the call,
     * and to end it once this one has done its part.
     */
    long[] waitNanos();
}
