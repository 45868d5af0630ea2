package io.deepep.observe;

import io.deepep.EpTopology;

/**
 * What one run of an operation moved, as far as the host knows it. What it cannot know without
 * asking the GPU is {@link #UNKNOWN}, or null for arrays. Observers may keep it; the arrays are not
 * theirs to change.
 */
public interface CallFacts {
    /** Stands for a number that the host does not know. */
    long UNKNOWN = -1;

    /** The rank that ran the operation, and its group. */
    EpTopology topology();

    /** What travels, as {@code bf16}, {@code fp8_e4m3} or {@code logfmt10}. */
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
     * {@link #UNKNOWN} where rows are counted on the GPU alone.
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
     * [R] Nanoseconds that this rank had nothing to do but wait while the rank was missing; null
     * where the host does not know them. Normal mode on the host: a wait counts for the first rank
     * that is missing. On GPUs and in low-latency mode: for every rank until it comes, so that the
     * sum can exceed the call; in normal mode on GPUs those are the waits for the ranks to begin
     * the call, and to end it once this one has done its part.
     */
    long[] waitNanos();
}
