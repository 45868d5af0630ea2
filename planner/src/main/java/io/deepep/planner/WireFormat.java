package io.deepep.planner;

import io.deepep.Config;
import io.deepep.DType;
import io.deepep.EpTopology;
import io.deepep.LowLatencyLimits;
import io.deepep.NormalDefaults;
import io.deepep.lowlatency.CombineWord;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.normal.HeaderWord;
import io.deepep.normal.NormalRdmaLayout;
import io.deepep.normal.RingShape;
import io.deepep.spi.RowFormat;

/**
 * The bytes that an operation puts on the links, from the layouts of the protocols. Over RDMA,
 * exactly the bytes of writes are counted; signals, atomics of one word each, count only as
 * messages.
 *
 * @param payloadBytes bytes of a row: only its elements and scales
 * @param nvlinkRowBytes bytes of a row as it travels over NVLink, padding and metadata included
 * @param rdmaRowBytes bytes of a row as it travels over RDMA, padding and metadata included
 * @param nvlinkControlBytes bytes that a rank sends over NVLink besides rows: headers and flags
 * @param rdmaControlBytes bytes that it sends over RDMA besides rows and records: headers
 * @param rdmaRecordBytes bytes of the records that it sends over RDMA for each of its tokens,
 *     wherever that goes
 * @param rdmaControlMessages messages that it sends over RDMA besides rows, including all signals
 */
public record WireFormat(
        long payloadBytes,
        long nvlinkRowBytes,
        long rdmaRowBytes,
        long nvlinkControlBytes,
        long rdmaControlBytes,
        long rdmaRecordBytes,
        long rdmaControlMessages) {
    private static final long FLAG_BYTES = 8;

    /** Rows alone, as others ship them. */
    static WireFormat ofRows(long rowBytes) {
        return new WireFormat(rowBytes, rowBytes, rowBytes, 0, 0, 0, 0);
    }

    /** An operation of this library. */
    static WireFormat of(Mode mode, Op op, DType dtype, Shape shape, EpTopology topology) {
        DType rowType = op == Op.COMBINE ? DType.BF16 : dtype;
        RowFormat row = new RowFormat(rowType, shape.hidden());
        return mode == Mode.NORMAL
                ? normal(op, row, shape, topology)
                : lowLatency(op, row, shape, topology);
    }

    /**
     * Every rank's header comes to the rank with its nvlRank on each node, which hands it to its
     * node. A dispatch's counts travel in it, its records ahead of the rows, and behind each row
     * where it goes; for each ring the sender says how many rows it had.
     */
    private static WireFormat normal(Op op, RowFormat row, Shape shape, EpTopology topology) {
        boolean dispatch = op == Op.DISPATCH;
        long nodes = topology.numRdmaRanks();
        long experts = dispatch ? shape.numExperts() / topology.numRanks() : 0;
        long words = dispatch ? HeaderWord.firstExpert(topology) : HeaderWord.HEADER_WORDS;
        long header = Long.BYTES * (words + experts);
        long image = Integer.BYTES * (words + experts * topology.numNvlRanks());
        long metadata = dispatch ? Integer.BYTES + 8L * shape.numTopk() : 0;
        NormalDefaults defaults = NormalDefaults.ofGpus(topology);
        int blocks = (dispatch ? defaults.dispatch() : defaults.combine()).numSms();
        long record = dispatch ? NormalRdmaLayout.recordBytes(topology, shape.numTopk()) : 0;
        long sent =
                dispatch
                        ? NormalRdmaLayout.sentBytes(topology, row.strideBytes())
                        : row.strideBytes();
        long rings = dispatch ? blocks / 2L * RingShape.MOST_DISPATCH_RINGS : 0;
        return new WireFormat(
                row.dataBytes(),
                row.strideBytes() + metadata,
                sent,
                (topology.numNvlRanks() - 1) * (nodes * header + 2 * FLAG_BYTES),
                (nodes - 1) * image,
                (nodes - 1) * record,
                (nodes - 1) * (1 + blocks + rings));
    }

    /** A header, a flag and an acknowledgement between every two ranks. */
    private static WireFormat lowLatency(Op op, RowFormat row, Shape shape, EpTopology topology) {
        boolean dispatch = op == Op.DISPATCH;
        LowLatencyLimits limits = BufferBytes.lowLatencyLimits(shape);
        long header =
                (long) Long.BYTES
                        * (dispatch
                                ? LowLatencyLayout.dispatchWords(limits, topology.numRanks())
                                : CombineWord.COUNT);
        long onNode = topology.numNvlRanks() - 1L;
        long elsewhere = topology.numRanks() - (long) topology.numNvlRanks();
        return new WireFormat(
                row.dataBytes(),
                dispatch
                        ? LowLatencyLayout.dispatchedBytes(row, shape.numTopk())
                        : row.dataBytes() + FLAG_BYTES,
                dispatch ? row.strideBytes(shape.numTopk()) : row.dataBytes(),
                onNode * (header + 2 * FLAG_BYTES),
                elsewhere * header,
                0,
                elsewhere * 3);
    }

    /** The configuration that a buffer is laid out for if none is given. */
    public static Config configFor(EpTopology topology) {
        NormalDefaults defaults = NormalDefaults.ofGpus(topology);
        return defaults.dispatch().covering(defaults.combine());
    }
}
