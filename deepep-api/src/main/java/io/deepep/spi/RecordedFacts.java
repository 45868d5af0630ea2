package io.deepep.spi;

import io.deepep.EpTopology;
import io.deepep.observe.CallFacts;

/** The facts of one run as its kernels fill them in, see {@link Operation#describe}. */
public final class RecordedFacts implements CallFacts {
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
    public RecordedFacts(EpTopology topology, long[] waitNanos) {
        this.topology = topology;
        this.waitNanos = waitNanos;
    }

    @Override
    public EpTopology topology() {
        return topology;
    }

    @Override
    public String format() {
        return format;
    }

    @Override
    public long rowBytes() {
        return rowBytes;
    }

    @Override
    public long numTokens() {
        return numTokens;
    }

    @Override
    public long numRecvTokens() {
        return numRecvTokens;
    }

    @Override
    public long nvlinkBytes() {
        return bytes(nvlinkRows);
    }

    @Override
    public long rdmaBytes() {
        return bytes(rdmaRows);
    }

    private long bytes(long rows) {
        return rows < 0 || rowBytes < 0 ? UNKNOWN : rows * rowBytes;
    }

    @Override
    public long[] sentRows() {
        return sentRows;
    }

    @Override
    public long[] receivedRows() {
        return receivedRows;
    }

    @Override
    public int[] expertTokens() {
        return expertTokens;
    }

    @Override
    public long[] waitNanos() {
        return waitNanos;
    }

    /** Sets what travels. */
    public RecordedFacts rows(String rowFormat, long bytes) {
        this.format = rowFormat;
        this.rowBytes = bytes;
        return this;
    }

    /** Sets this rank's tokens and the rows that arrived. */
    public RecordedFacts tokens(long own, long arrived) {
        this.numTokens = own;
        this.numRecvTokens = arrived;
        return this;
    }

    /** Sets the rows between this rank and each other, [R]; the arrays are copied. */
    public RecordedFacts peers(int[] sent, int[] received) {
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
    public RecordedFacts links(long overNvlink, long overRdma) {
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
    public RecordedFacts directLinks(int[] ownRows) {
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
    public RecordedFacts waits(long[] nanos) {
        this.waitNanos = nanos;
        return this;
    }

    /** Sets the tokens of each local expert; kept, not copied. */
    public RecordedFacts experts(int[] tokens) {
        this.expertTokens = tokens;
        return this;
    }
}
