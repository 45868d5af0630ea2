package io.deepep.bench.plan;

import io.deepep.Config;
import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalLimits;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.normal.NormalHeader;
import io.deepep.normal.NormalNvlLayout;
import io.deepep.normal.NormalRdmaLayout;
import io.deepep.spi.Layout;
import io.deepep.spi.RowFormat;

/**
 * Bytes that an operation puts on the links, from the layouts of the protocols.
 *
 * @param payloadBytes of a row: elements and scales alone
 * @param rowBytes of a row as it travels, padding and metadata included
 * @param nvlinkControlBytes that a rank sends over NVLink besides rows: headers and flags
 * @param rdmaControlBytes that it sends over RDMA besides rows
 * @param rdmaControlMessages in which it does
 */
record WireFormat(
        long payloadBytes,
        long rowBytes,
        long nvlinkControlBytes,
        long rdmaControlBytes,
        long rdmaControlMessages) {
    private static final long FLAG_BYTES = 8;

    /** Rows alone, as others ship them. */
    static WireFormat ofRows(long rowBytes) {
        return new WireFormat(rowBytes, rowBytes, 0, 0, 0);
    }

    /** An operation of this library. */
    static WireFormat of(Mode mode, Op op, DType dtype, Shape shape, EpTopology topology) {
        DType rowType = op == Op.COMBINE ? DType.BF16 : dtype;
        long payload = new RowFormat(rowType, shape.hidden()).dataBytes();
        return mode == Mode.NORMAL
                ? normal(op, payload, shape, topology)
                : lowLatency(op, payload, shape, topology);
    }

    /**
     * Every rank's header comes to the rank with its nvlRank on each node, which hands it to its
     * node.
     */
    private static WireFormat normal(Op op, long payload, Shape shape, EpTopology topology) {
        NormalLimits limits =
                NormalLimits.of(
                        shape.numTokens(), shape.hidden(), shape.numTopk(), shape.numExperts());
        Config config = configFor(topology);
        long header = NormalHeader.slotBytes(topology.numRanks(), shape.numExperts());
        long channels =
                NormalRdmaLayout.of(config, limits, topology).channelMeta().recordBytes()
                        * config.numChannels();
        long nodes = topology.numRdmaRanks();
        long meta =
                op == Op.DISPATCH
                        ? NormalNvlLayout.metaBytes(shape.numTopk())
                        : (long) DType.F32.sizeBytes() * shape.numTopk();
        return new WireFormat(
                payload,
                Layout.alignToLine(payload) + meta,
                (topology.numNvlRanks() - 1) * nodes * header,
                (nodes - 1) * (header + (op == Op.DISPATCH ? channels : 0)),
                (nodes - 1) * (1 + (op == Op.DISPATCH ? config.numChannels() : 0)));
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
                payload, payload + selection, onNode * perPeer, elsewhere * perPeer, elsewhere * 3);
    }

    /** The configuration that a buffer is laid out for when none is given. */
    static Config configFor(EpTopology topology) {
        return Config.recommended(topology.numRanks());
    }
}
