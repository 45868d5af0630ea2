package io.deepep.spi;

import io.deepep.EpTopology;
import io.deepep.observe.CallFacts;
import java.util.Arrays;
import java.util.Locale;

/** The facts of a run, filled in by its operation. See {@link Operation#describe}. */
public final class RecordedFacts {
    /** See {@link CallFacts#UNKNOWN}. */
    public static final long UNKNOWN = CallFacts.UNKNOWN;

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
     * Creates facts to be filled in.
     *
     * @param topology the rank that ran the operation, and its place in the group
     * @param waitNanos see {@link CallFacts#waitNanos}
     */
    public RecordedFacts(EpTopology topology, long[] waitNanos) {
        this.topology = topology;
        this.waitNanos = waitNanos;
    }

    /** What has been filled in. */
    public CallFacts facts() {
        return new CallFacts(
                topology,
                format,
                rowBytes,
                numTokens,
                numRecvTokens,
                bytes(nvlinkRows),
                bytes(rdmaRows),
                sentRows,
                receivedRows,
                expertTokens,
                waitNanos);
    }

    private long bytes(long rows) {
        return rows < 0 || rowBytes < 0 ? UNKNOWN : rows * rowBytes;
    }

    /** Sets the format of rows and their size in bytes, without padding. */
    public RecordedFacts rows(RowFormat row) {
        return rows(row.dtype().name().toLowerCase(Locale.ROOT), row.dataBytes());
    }

    /** Sets the format of rows and their size in bytes. */
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

    /**
     * Sets the rows that this rank sent to and received from each rank, [R]; the arrays are copied.
     */
    public RecordedFacts peers(int[] sent, int[] received) {
        this.sentRows = Arrays.stream(sent).asLongStream().toArray();
        this.receivedRows = Arrays.stream(received).asLongStream().toArray();
        return this;
    }

    /** Sets the rows that crossed links for this rank's own tokens. */
    public RecordedFacts links(long overNvlink, long overRdma) {
        this.nvlinkRows = overNvlink;
        this.rdmaRows = overRdma;
        return this;
    }

    /**
     * Sets the rows that crossed links for this rank's own tokens if every row goes directly to its
     * rank: over NVLink within the node, over RDMA to other nodes.
     *
     * @param ownRows rows of this rank's tokens at each rank, [R]
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

    /** Sets {@link CallFacts#waitNanos}; the array is not copied. */
    public RecordedFacts waits(long[] nanos) {
        this.waitNanos = nanos;
        return this;
    }

    /** Sets the tokens of each local expert, [El]; the array is not copied. */
    public RecordedFacts experts(int[] tokens) {
        this.expertTokens = tokens;
        return this;
    }
}
