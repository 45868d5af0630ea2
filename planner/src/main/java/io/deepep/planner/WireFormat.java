package io.deepep.planner;

import io.deepep.Config;
import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.LowLatencyLimits;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.normal.HeaderWord;
import io.deepep.normal.NormalRdmaLayout;
import io.deepep.spi.RowFormat;

/**
 * Bytes that an operation puts on the links, from the layouts of the protocols.
 *
 * @param payloadBytes of a row: elements and scales alone
 * @param nvlinkRowBytes of a row as it travels over NVLink, padding and metadata included
 * @param rdmaRowBytes of a row as it travels over RDMA, padding and metadata included
 * @param nvlinkControlBytes that a rank sends over NVLink besides rows: headers and flags
 * @param rdmaControlBytes that it sends over RDMA besides rows: these, and records
 * @param rdmaControlMessages in which it does
 */
public record WireFormat(
        long payloadBytes,
        long nvlinkRowBytes,
        long rdmaRowBytes,
        long nvlinkControlBytes,
        long rdmaControlBytes,
        long rdmaControlMessages) {
    private static final long FLAG_BYTES = 8;

    /** Rows alone, as others ship them. */
    static WireFormat ofRows(long rowBytes) {
        return new WireFormat(rowBytes, rowBytes, rowBytes, 0, 0, 0);
    }

    /** An operation of this library. */
    static WireFormat of(Mode mode, Op op, DType dtype, Shape shape, EpTopology topology) {
        DType rowType = op == Op.COMBINE ? DType.BF16 : dtype;
        RowFormat row = new RowFormat(rowType, shape.hidden());
        return mode == Mode.NORMAL
                ? normal(op, row, shape, topology)
                : lowLatency(op, row.dataBytes(), shape, topology);
    }

    /**
     * Every rank's header comes to the rank with its nvlRank on each node, which hands it to its
     * node. A dispatch's counts travel in it, and its records ahead of the rows.
     */
    private static WireFormat normal(Op op, RowFormat row, Shape shape, EpTopology topology) {
        boolean dispatch = op == Op.DISPATCH;
        long nodes = topology.numRdmaRanks();
        long experts = dispatch ? shape.numExperts() / topology.numRanks() : 0;
        long words = dispatch ? HeaderWord.firstExpert(topology) : HeaderWord.HEADER_WORDS;
        long header = Long.BYTES * (words + experts);
        long image = Integer.BYTES * (words + experts * topology.numNvlRanks()) + FLAG_BYTES;
        long weights = (long) Float.BYTES * shape.numTopk();
        long metadata = dispatch ? Integer.BYTES + 2 * weights : weights;
        int blocks = configFor(topology).numSms();
        long beside =
                (long) shape.numTokens()
                                * (dispatch
                                        ? NormalRdmaLayout.recordBytes(topology, shape.numTopk())
                                        : weights)
                        + FLAG_BYTES * blocks;
        return new WireFormat(
                row.dataBytes(),
                row.strideBytes() + metadata,
                row.strideBytes(),
                (topology.numNvlRanks() - 1) * (nodes * header + 2 * FLAG_BYTES),
                (nodes - 1) * (image + beside),
                (nodes - 1) * (1L + blocks));
    }

    /** A header, a flag and an acknowledgement between every two ranks. */
    private static WireFormat lowLatency(Op op, long payload, Shape shape, EpTopology topology) {
        LowLatencyLayout heap =
                LowLatencyLayout.of(
                        new LowLatencyLimits(
                                shape.numTokens(),
                                shape.hidden(),
                                shape.numExperts(),
                                shape.numTopk()),
                        topology);
        long header =
                (op == Op.DISPATCH ? heap.dispatchHeaders() : heap.combineHeaders()).recordBytes();
        long selection = op == Op.DISPATCH ? 4L + 4L * shape.numTopk() : 0;
        long perPeer = header + 2 * FLAG_BYTES;
        long onNode = topology.numNvlRanks() - 1L;
        long elsewhere = topology.numRanks() - (long) topology.numNvlRanks();
        return new WireFormat(
                payload,
                payload + selection,
                payload + selection,
                onNode * perPeer,
                elsewhere * perPeer,
                elsewhere * 3);
    }

    /** The configuration that a buffer is laid out for when none is given. */
    public static Config configFor(EpTopology topology) {
        return Config.recommended(topology.numRanks());
    }
}
