package io.deepep.lowlatency.host;

import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;
import io.deepep.Ue8m0;
import io.deepep.lowlatency.CallEpoch;
import io.deepep.lowlatency.DispatchFlagWord;
import io.deepep.lowlatency.DispatchWord;
import io.deepep.lowlatency.Kind;
import io.deepep.lowlatency.LowLatencyFormats;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.spi.RowFormat;
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
    private final MemorySegment local;
    private final Peers peers;
    private final Headers headers;
    private final int numLocalExperts;

    DispatchReceiver(HostLowLatencyKernels kernels) {
        this.kernels = kernels;
        this.layout = kernels.layout;
        this.local = kernels.rdma.local();
        this.peers = kernels.peers;
        this.headers = new Headers(Kind.DISPATCH, kernels);
        this.numLocalExperts = kernels.limits.numLocalExperts(peers.count());
    }

    void receive(long call) {
        HostBank bank = kernels.dispatches.of(call);
        bank.forgetSent();
        // acquire; pairs with the release in Headers.announce.
        int other =
                peers.awaitHeaders(
                        Kind.DISPATCH,
                        call,
                        bank.nextCombine,
                        bank.reached,
                        bank.present,
                        bank.plan.waitCostStats());
        try {
            if (other >= 0) {
                kernels.skip(Kind.COMBINE, bank.nextCombine);
                throw headers.errors.otherKind(other);
            }
            // What all ranks conclude alike.
            int format = LowLatencyFormats.dispatchCode(bank.plan);
            headers.requireSame(call, bank.present, DispatchWord.FORMAT, format);
            headers.requireSame(call, bank.present, DispatchWord.TOPK, bank.numTopk());
            headers.requireValidSelections(call, bank.present);
            placeSources(call, bank);
            for (int source = 0; source < peers.count(); source++) {
                bank.receivedRows[source] = 0;
                if (bank.present[source]) {
                    unpackSource(call, source, bank);
                }
            }
            addStats(bank);
            bank.setReceived();
        } finally {
            // Also after an error that every rank learned of: the slots are free again.
            peers.acknowledge(Kind.DISPATCH, call);
        }
    }

    /** Gives each source its range of rows at each expert. */
    private void placeSources(long call, HostBank bank) {
        for (int expert = 0; expert < numLocalExperts; expert++) {
            int begin = 0;
            for (int source = 0; source < peers.count(); source++) {
                int word = DispatchWord.COUNT + expert;
                int count = bank.present[source] ? headers.get(call, source, word) : 0;
                bank.layoutRange()
                        .segment()
                        .set(
                                LONG,
                                8L * ((long) expert * peers.count() + source),
                                LowLatencyHandle.range(begin, count));
                begin += count;
            }
            bank.count().segment().set(INT, 4L * expert, begin);
        }
    }

    private void unpackSource(long call, int source, HostBank bank) {
        int parity = CallEpoch.parity(call);
        RowFormat format = bank.rowFormat;
        int numRows = headers.get(call, source, DispatchWord.NUM_ROWS);
        bank.receivedRows[source] = numRows;
        for (int i = 0; i < numRows; i++) {
            long flag = layout.dispatchFlag(parity, source, i, bank.numTopk());
            if (DispatchFlagWord.EPOCH.get(local, flag, 0) != CallEpoch.of(call)) {
                throw new IllegalStateException(
                        "row " + i + " from rank " + source + " is not of dispatch " + call);
            }
            int token = DispatchFlagWord.token(DispatchFlagWord.TAG.get(local, flag, 0));
            long slot = layout.dispatchRow(parity, source, token, format, bank.numTopk());
            if (bank.isWeighted()) {
                bank.weightedRows.setToken(source, i, token);
            }
            for (int k = 0; k < bank.numTopk(); k++) {
                int selection = DispatchFlagWord.SELECTION.get(local, flag, k);
                boolean isHere = selection != DispatchFlagWord.NO_SELECTION;
                int expert = isHere ? DispatchFlagWord.expert(selection) : -1;
                int row =
                        isHere
                                ? firstRow(bank, expert, source) + DispatchFlagWord.order(selection)
                                : 0;
                if (bank.isWeighted()) {
                    float weight =
                            Float.intBitsToFloat(DispatchFlagWord.WEIGHT.get(local, flag, k));
                    bank.weightedRows.setSelection(source, i, k, expert, row, weight);
                }
                if (isHere) {
                    unpackRow(slot, format, bank, expert, row, token, k);
                }
            }
        }
    }

    private int firstRow(HostBank bank, int expert, int source) {
        long place = 8L * ((long) expert * peers.count() + source);
        return LowLatencyHandle.rangeBegin(bank.layoutRange().segment().get(LONG, place));
    }

    private void unpackRow(
            long slot, RowFormat format, HostBank bank, int expert, int row, int token, int k) {
        long place = (long) expert * bank.numSlots() + row;
        long rowBytes = format.elementBytes();
        MemorySegment.copy(local, slot, bank.recvX.segment(), place * rowBytes, rowBytes);
        bank.srcInfo().segment().set(INT, 4 * place, token);
        bank.srcSelection.set(INT, 4 * place, k);
        if (bank.plan.format().isFp8()) {
            unpackScales(slot + rowBytes, format.numScales(), bank, expert, row);
        }
    }

    /** Scales lie by column: those of one group of channels side by side. */
    private void unpackScales(long from, int groups, HostBank bank, int expert, int row) {
        boolean packed = bank.plan.format() == LowLatencyFormat.FP8_UE8M0;
        int columns = packed ? Ue8m0.packedSize(groups) : groups;
        MemorySegment scales = bank.recvScales.segment();
        long to = 4L * ((long) expert * columns * bank.numSlots() + row);
        for (int column = 0; column < columns; column++) {
            int scale =
                    packed
                            ? packUe8m0(from, column * Ue8m0.PER_INT, groups)
                            : local.get(INT, from + 4L * column);
            scales.set(INT, to + 4L * column * bank.numSlots(), scale);
        }
    }

    private int packUe8m0(long from, int first, int groups) {
        int packed = 0;
        for (int j = 0; j < Ue8m0.PER_INT && first + j < groups; j++) {
            float scale = local.get(FLOAT, from + 4L * (first + j));
            packed |= (Ue8m0.fromPowerOfTwo(scale) & 0xff) << (8 * j);
        }
        return packed;
    }

    private void addStats(HostBank bank) {
        Tensor cumulativeStats = bank.plan.cumulativeStats();
        if (cumulativeStats == null) {
            return;
        }
        MemorySegment stats = cumulativeStats.segment();
        for (int expert = 0; expert < numLocalExperts; expert++) {
            stats.set(
                    INT,
                    4L * expert,
                    stats.get(INT, 4L * expert) + bank.count().segment().get(INT, 4L * expert));
        }
    }
}
