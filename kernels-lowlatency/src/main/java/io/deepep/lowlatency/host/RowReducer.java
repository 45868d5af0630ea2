package io.deepep.lowlatency.host;

import io.deepep.LowLatencyCombinePlan;
import io.deepep.Tensor;
import io.deepep.lowlatency.CallEpoch;

/**
 * The send half of a pre-reduced combine: this rank's rows of a token are summed, weighted, in fp32
 * and in the order of selections, rounded to BF16 and sent to the slot of the first of them.
 */
final class RowReducer {
    private final HostLowLatencyKernels kernels;
    private final CombineFlags flags;
    private final SentRows rows;

    RowReducer(HostLowLatencyKernels kernels, CombineFlags flags, SentRows rows) {
        this.kernels = kernels;
        this.flags = flags;
        this.rows = rows;
    }

    /** Sends the sums of all of an owner's tokens; returns how many. */
    int send(LowLatencyCombinePlan plan, DispatchBank bank, long call, int owner) {
        int parity = CallEpoch.parity(call);
        int numRows = bank.receivedRows[owner];
        for (int i = 0; i < numRows; i++) {
            int first = addRows(plan.x(), bank, owner, i);
            int token = bank.weightedRows.token(owner, i);
            long slot = kernels.layout.combineRow(parity, kernels.rank, token, first);
            rows.putSum(plan.format(), kernels.rdma.of(owner), slot);
            flags.set(owner, call, token, first);
        }
        return numRows;
    }

    /** Adds up the rows of a token; returns the first selection that is among them. */
    private int addRows(Tensor x, DispatchBank bank, int owner, int i) {
        WeightedRows weighted = bank.weightedRows;
        int first = -1;
        rows.clear();
        for (int k = 0; k < bank.numTopk(); k++) {
            if (weighted.isHere(owner, i, k)) {
                first = first < 0 ? k : first;
                long expert = weighted.expert(owner, i, k);
                long at = 2 * (x.stride(0) * expert + x.stride(1) * weighted.row(owner, i, k));
                rows.add(weighted.weight(owner, i, k), x.segment(), at);
            }
        }
        return first;
    }
}
