package io.deepep.lowlatency.host;

import io.deepep.CombineFormat;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.host.HostHeap;
import io.deepep.host.HostMemory;
import io.deepep.host.RowMath;
import io.deepep.lowlatency.CallEpoch;
import io.deepep.lowlatency.LowLatencyLayout;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * The send half of a pre-reduced combine: this rank's rows of a token are summed, weighted, in fp32
 * and in the order of selections, rounded to BF16 and sent to the slot of the first of them.
 */
final class RowReducer {
    private final LowLatencyLayout layout;
    private final HostHeap rdma;
    private final int rank;
    private final CombineFlags flags;
    private final int hidden;
    private final float[] sum;
    private final float[] weights;
    private final long[] offsets;
    private final MemorySegment[] sources;
    private final SentRows rows;

    /** A sum before it is encoded. */
    private final MemorySegment rounded;

    RowReducer(
            LowLatencyLimits limits,
            LowLatencyLayout layout,
            HostHeap rdma,
            int rank,
            CombineFlags flags) {
        this.flags = flags;
        this.layout = layout;
        this.rank = rank;
        this.rdma = rdma;
        this.hidden = limits.hidden();
        this.rows = new SentRows(hidden);
        this.sum = new float[hidden];
        this.weights = new float[limits.maxTopk()];
        this.offsets = new long[limits.maxTopk()];
        this.sources = new MemorySegment[limits.maxTopk()];
        this.rounded = HostMemory.allocate(Arena.ofAuto(), 2L * hidden);
    }

    /** Sends the sums of all of an owner's tokens; returns how many. */
    int send(LowLatencyCombinePlan plan, DispatchBank bank, long call, int owner) {
        Arrays.fill(sources, plan.x().segment());
        int numRows = bank.receivedRows[owner];
        for (int i = 0; i < numRows; i++) {
            int first = sumRow(plan.x(), bank, owner, i);
            int token = bank.weightedRows.token(owner, i);
            long slot = layout.combineRow(CallEpoch.parity(call), rank, token, first);
            store(rdma.of(owner), slot, plan.format());
            flags.set(owner, call, token, first);
        }
        return numRows;
    }

    /** Leaves the sum in {@link #sum}; returns the first selection that is in it. */
    private int sumRow(Tensor x, DispatchBank bank, int owner, int i) {
        WeightedRows rows = bank.weightedRows;
        int first = -1;
        int count = 0;
        for (int k = 0; k < bank.numTopk(); k++) {
            if (rows.isHere(owner, i, k)) {
                first = first < 0 ? k : first;
                weights[count] = rows.weight(owner, i, k);
                long expert = rows.expert(owner, i, k);
                offsets[count++] = 2 * (x.stride(0) * expert + x.stride(1) * rows.row(owner, i, k));
            }
        }
        RowMath.clear(sum, hidden);
        RowMath.addScaledBf16(sum, weights, sources, offsets, count, hidden);
        return first;
    }

    private void store(MemorySegment to, long slot, CombineFormat format) {
        if (format == CombineFormat.BF16) {
            RowMath.storeBf16(sum, to, slot, hidden);
        } else {
            RowMath.storeBf16(sum, rounded, 0, hidden);
            rows.put(format, rounded, 0, to, slot);
        }
    }
}
