package io.deepep.spi;

import io.deepep.EpTopology;

/**
 * What one run of an operation moved, as its kernels tell it. What they cannot tell without asking
 * the GPU is {@link #UNKNOWN}, or null for arrays. Filled by {@link Operation#describe}; observers
 * only read, and may keep it.
 */
public final class CallFacts {
    /** Stands for a number that the host does not know. */
    public static final long UNKNOWN = -1;

    private final EpTopology topology;
    private long[] waitNanos;
    private String format = "";
    private long rowBytes = UNKNOWN;
    private long numTokens = UNKNOWN;
    private long numRecvTokens = UNKNOWN;
    private long nvlinkRows = UNKNOWN;
    private long rdmaRows = UNKNOWN;
    private long[] sentRows;
    private long[] receivedRows;
    private int[] expertTokens;

    /**
     * Facts to be filled in.
     *
     * @param topology the rank that ran the operation, and its group
     * @param waitNanos see {@link #waitNanos()}
     */
    public CallFacts(EpTopology topology, long[] waitNanos) {
        this.topology = topology;
        this.waitNanos = waitNanos;
    }

    /** The rank that ran the operation, and its group. */
    public EpTopology topology() {
        return topology;
    }

    /** What travels, as {@code bf16}, {@code fp8_e4m3} or {@code logfmt10}. */
    public String format() {
        return format;
    }

    /** Bytes of a row as it travels: elements and scales, without padding, indices and weights. */
    public long rowBytes() {
        return rowBytes;
    }

    /** T: this rank's tokens. */
    public long numTokens() {
        return numTokens;
    }

    /**
     * Rows that arrived at this rank. Dispatch: received tokens (low latency: selections of this
     * rank's experts). Combine: rows that came home.
     */
    public long numRecvTokens() {
        return numRecvTokens;
    }

    /**
     * Bytes that this rank's own tokens put on NVLink, on their way out in a dispatch and on their
     * way home in a combine; across nodes that includes what other ranks forward within their node.
     * {@link #UNKNOWN} where rows are counted on the GPU alone.
     */
    public long nvlinkBytes() {
        return bytes(nvlinkRows);
    }

    /** Likewise between nodes. */
    public long rdmaBytes() {
        return bytes(rdmaRows);
    }

    private long bytes(long rows) {
        return rows < 0 || rowBytes < 0 ? UNKNOWN : rows * rowBytes;
    }

    /** [R] Rows that went from this rank to each rank, its own included; null if unknown. */
    public long[] sentRows() {
        return sentRows;
    }

    /** [R] Rows that came from each rank, its own included; null if unknown. */
    public long[] receivedRows() {
        return receivedRows;
    }

    /**
     * [El] Tokens that a dispatch brought for each local expert, as the result counts them (normal
     * mode: rounded up to the request's alignment); null in a combine, in a cached dispatch, and
     * where unknown.
     */
    public int[] expertTokens() {
        return expertTokens;
    }

    /**
     * [R] Nanoseconds that this rank had nothing to do but wait while the rank was missing; null
     * where the host does not know them. Normal mode on the host: a wait counts for the first rank
     * that is missing. On GPUs and in low-latency mode: for every rank until it comes, so that the
     * sum can exceed the call; in normal mode on GPUs those are the waits for the ranks to begin
     * the call, and to end it once this one has done its part.
     */
    public long[] waitNanos() {
        return waitNanos;
    }

    /** Sets what travels. */
    public CallFacts rows(String rowFormat, long bytes) {
        this.format = rowFormat;
        this.rowBytes = bytes;
        return this;
    }

    /** Sets this rank's tokens and the rows that arrived. */
    public CallFacts tokens(long own, long arrived) {
        this.numTokens = own;
        this.numRecvTokens = arrived;
        return this;
    }

    /** Sets the rows between this rank and each other, [R]; the arrays are copied. */
    public CallFacts peers(int[] sent, int[] received) {
        this.sentRows = widen(sent);
        this.receivedRows = widen(received);
        return this;
    }

    private static long[] widen(int[] counts) {
        long[] wide = new long[counts.length];
        for (int i = 0; i < wide.length; i++) {
            wide[i] = counts[i];
        }
        return wide;
    }

    /** Sets what this rank's own tokens put on links. */
    public CallFacts links(long overNvlink, long overRdma) {
        this.nvlinkRows = overNvlink;
        this.rdmaRows = overRdma;
        return this;
    }

    /**
     * Sets what this rank's own tokens put on links where every row goes straight to its rank: over
     * NVLink within the node, over RDMA to others.
     *
     * @param ownRows [R] rows of this rank's tokens at each rank
     */
    public CallFacts directLinks(int[] ownRows) {
        long overNvlink = 0;
        long overRdma = 0;
        for (int peer = 0; peer < ownRows.length; peer++) {
            boolean sameNode = peer / topology.numNvlRanks() == topology.rdmaRank();
            overNvlink += sameNode && peer != topology.rank() ? ownRows[peer] : 0;
            overRdma += sameNode ? 0 : ownRows[peer];
        }
        return links(overNvlink, overRdma);
    }

    /** Sets {@link #waitNanos()}; kept, not copied. */
    public CallFacts waits(long[] nanos) {
        this.waitNanos = nanos;
        return this;
    }

    /** Sets the tokens of each local expert; kept, not copied. */
    public CallFacts experts(int[] tokens) {
        this.expertTokens = tokens;
        return this;
    }
}
