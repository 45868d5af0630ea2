package io.deepep.lowlatency.host;

import io.deepep.Fp8E4m3;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.Ue8m0;
import io.deepep.error.CapacityExceededException;
import io.deepep.error.RankMismatchException;
import io.deepep.error.RoutingException;
import io.deepep.host.HostContext;
import io.deepep.host.HostHeap;
import io.deepep.lowlatency.LowLatencyHeader;
import io.deepep.lowlatency.LowLatencyLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The receive half of a dispatch: waits for every source, then packs rows by local expert in the
 * order (source rank, token, selection).
 */
final class DispatchReceiver {
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;

    private final HostLowLatencyKernels kernels;
    private final LowLatencyLayout layout;
    private final HostHeap rdma;
    private final MemorySegment local;
    private final Peers peers;
    private final int rank;
    private final LowLatencyLimits limits;
    private final int numLocalExperts;
    private final int hidden;
    private final int[] next;

    DispatchReceiver(
            HostLowLatencyKernels kernels,
            HostContext context,
            LowLatencyLimits limits,
            LowLatencyLayout layout,
            Peers peers) {
        this.kernels = kernels;
        this.layout = layout;
        this.rdma = context.rdma();
        this.local = rdma.local();
        this.peers = peers;
        this.rank = context.topology().rank();
        this.limits = limits;
        this.numLocalExperts = limits.numLocalExperts(peers.count());
        this.hidden = limits.hidden();
        this.next = new int[numLocalExperts];
    }

    void receive(long epoch, Tensor cumulativeStats, Tensor waitCostStats) {
        DispatchBank bank = kernels.bank((int) (epoch & 1));
        bank.phase = DispatchBank.Phase.EMPTY;
        int parity = (int) (epoch & 1);
        // acquire; pairs with the release in DispatchSender.announce.
        int other =
                peers.awaitCall(
                        layout.dispatchFlags(),
                        epoch,
                        layout.combineFlags(),
                        bank.nextCombine,
                        "low-latency dispatch.rows",
                        bank.present,
                        waitCostStats);
        try {
            if (other >= 0) {
                kernels.combiner().skip();
                throw peers.differentCalls("dispatch", other, "combine");
            }
            checkHeaders(parity, bank);
            checkRoom(parity, bank);
            placeSources(parity, bank);
            for (int source = 0; source < peers.count(); source++) {
                bank.receivedRows[source] = 0;
                if (bank.present[source]) {
                    unpackSource(parity, source, bank);
                }
            }
            addStats(bank, cumulativeStats);
            bank.phase = DispatchBank.Phase.RECEIVED;
        } finally {
            // Also after an error that every rank learned of: the slots are free again.
            acknowledge(epoch);
        }
    }

    private long field(int parity, int source, int field) {
        return local.get(
                LONG,
                layout.dispatchHeaders().at(parity, source) + LowLatencyHeader.fieldOffset(field));
    }

    private void checkHeaders(int parity, DispatchBank bank) {
        for (int source = 0; source < peers.count(); source++) {
            if (!bank.present[source]) {
                continue;
            }
            long format = field(parity, source, LowLatencyHeader.FORMAT);
            long mine = LowLatencyHeader.formatCode(bank.format, bank.weighted);
            if (format != mine) {
                throw RankMismatchException.of(
                        "low-latency dispatch",
                        "format",
                        rank,
                        LowLatencyHeader.formatName(mine),
                        source,
                        LowLatencyHeader.formatName(format));
            }
            long numTopk = field(parity, source, LowLatencyHeader.NUM_TOPK);
            if (numTopk != bank.numTopk) {
                throw RankMismatchException.of(
                        "low-latency dispatch", "numTopk", rank, bank.numTopk, source, numTopk);
            }
        }
        for (int source = 0; source < peers.count(); source++) {
            if (bank.present[source]) {
                checkStatus(parity, source);
            }
        }
    }

    private void checkStatus(int parity, int source) {
        long status = field(parity, source, LowLatencyHeader.STATUS);
        if (status == LowLatencyHeader.STATUS_OK) {
            return;
        }
        long token = field(parity, source, LowLatencyHeader.DETAIL);
        long k = field(parity, source, LowLatencyHeader.DETAIL + 1);
        long expert = field(parity, source, LowLatencyHeader.DETAIL + 2);
        throw new RoutingException(
                source,
                LowLatencyHeader.topkRangeMessage(token, k, expert, limits.numExperts())
                        + "; use -1 for no selection");
    }

    /** Only selections that name an expert twice for one token can need more rows than it has. */
    private void checkRoom(int parity, DispatchBank bank) {
        for (int expert = 0; expert < limits.numExperts(); expert++) {
            int rows = 0;
            for (int source = 0; source < peers.count(); source++) {
                rows += bank.present[source] ? selections(parity, source, expert) : 0;
            }
            if (rows > bank.numSlots) {
                throw new CapacityExceededException(
                        expert / numLocalExperts,
                        rows,
                        bank.numSlots,
                        "these are the rows of expert "
                                + expert
                                + ": select an expert once per token, or raise"
                                + " LowLatencyLimits.maxTokens");
            }
        }
    }

    private int selections(int parity, int source, int expert) {
        return local.get(
                INT,
                layout.dispatchHeaders().at(parity, source)
                        + LowLatencyHeader.selectionsOffset(expert));
    }

    /** Gives each source its range of rows at each expert. */
    private void placeSources(int parity, DispatchBank bank) {
        for (int expert = 0; expert < numLocalExperts; expert++) {
            int begin = 0;
            for (int source = 0; source < peers.count(); source++) {
                int count =
                        bank.present[source]
                                ? selections(parity, source, rank * numLocalExperts + expert)
                                : 0;
                bank.layoutRange.set(
                        LONG,
                        8L * ((long) expert * peers.count() + source),
                        LowLatencyHandle.range(begin, count));
                begin += count;
            }
            bank.counts.set(INT, 4L * expert, begin);
        }
    }

    private void unpackSource(int parity, int source, DispatchBank bank) {
        for (int expert = 0; expert < numLocalExperts; expert++) {
            long place = 8L * ((long) expert * peers.count() + source);
            next[expert] = LowLatencyHandle.rangeBegin(bank.layoutRange.get(LONG, place));
        }
        long numRows = field(parity, source, LowLatencyHeader.NUM_ROWS);
        bank.receivedRows[source] = (int) numRows;
        for (long i = 0; i < numRows; i++) {
            long slot = layout.dispatchRows().at(parity, source, i);
            long selection = slot + layout.selectionOffset();
            int token = local.get(INT, selection);
            if (bank.weighted) {
                bank.weightedRows.setToken(source, i, token);
            }
            for (int k = 0; k < bank.numTopk; k++) {
                int expert = local.get(INT, selection + 4 + 4L * k);
                if (bank.weighted) {
                    float weight = local.get(FLOAT, selection + 4 + 4L * (bank.numTopk + k));
                    int row = expert >= 0 ? next[expert] : 0;
                    bank.weightedRows.setSelection(source, i, k, expert, row, weight);
                }
                if (expert >= 0) {
                    unpackRow(slot, bank, expert, next[expert]++, token, k);
                }
            }
        }
    }

    private void unpackRow(long slot, DispatchBank bank, int expert, int row, int token, int k) {
        long place = (long) expert * bank.numSlots + row;
        long rowBytes = bank.format.isFp8() ? hidden : 2L * hidden;
        MemorySegment.copy(local, slot, bank.rows, place * rowBytes, rowBytes);
        bank.srcInfo.set(INT, 4 * place, token);
        bank.srcSelection.set(INT, 4 * place, k);
        if (bank.format == LowLatencyFormat.FP8_UE8M0) {
            unpackUe8m0(slot + hidden, bank, expert, row);
        } else if (bank.format.isFp8()) {
            unpackScales(slot + hidden, bank, expert, row);
        }
    }

    private void unpackScales(long from, DispatchBank bank, int expert, int row) {
        int groups = hidden / Fp8E4m3.CHANNELS_PER_SCALE;
        long to = 4L * ((long) expert * groups * bank.numSlots + row);
        for (int group = 0; group < groups; group++) {
            bank.scales.set(
                    FLOAT, to + 4L * group * bank.numSlots, local.get(FLOAT, from + 4L * group));
        }
    }

    private void unpackUe8m0(long from, DispatchBank bank, int expert, int row) {
        int groups = hidden / Fp8E4m3.CHANNELS_PER_SCALE;
        int columns = (groups + Ue8m0.PER_INT - 1) / Ue8m0.PER_INT;
        long to = 4L * ((long) expert * columns * bank.numSlots + row);
        for (int column = 0; column < columns; column++) {
            int packed = 0;
            for (int j = 0; j < Ue8m0.PER_INT && Ue8m0.PER_INT * column + j < groups; j++) {
                float scale = local.get(FLOAT, from + 4L * (Ue8m0.PER_INT * column + j));
                packed |= (Ue8m0.fromPowerOfTwo(scale) & 0xff) << (8 * j);
            }
            bank.scales.set(INT, to + 4L * column * bank.numSlots, packed);
        }
    }

    private void addStats(DispatchBank bank, Tensor cumulativeStats) {
        if (cumulativeStats == null) {
            return;
        }
        MemorySegment stats = cumulativeStats.segment();
        for (int expert = 0; expert < numLocalExperts; expert++) {
            stats.set(
                    INT,
                    4L * expert,
                    stats.get(INT, 4L * expert) + bank.counts.get(INT, 4L * expert));
        }
    }

    /** Tells all ranks that their slots of dispatch {@code epoch} are free. */
    void acknowledge(long epoch) {
        int parity = (int) (epoch & 1);
        for (int source = 0; source < peers.count(); source++) {
            // release; pairs with the acquire in DispatchSender.awaitFreeSlots. Masked ranks too:
            // they may come back.
            rdma.signal(source, layout.dispatchAcks().at(parity, rank), epoch);
        }
    }
}
