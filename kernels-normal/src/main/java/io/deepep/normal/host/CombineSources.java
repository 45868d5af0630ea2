package io.deepep.normal.host;

import io.deepep.host.HostHeap;
import io.deepep.host.RowSum;
import io.deepep.normal.NormalHeader;
import io.deepep.normal.NormalHeaders;

/** Where the combine input of each rank of this node lies in the current combine. */
final class CombineSources {
    private final HostNormalState state;
    private final HostHeap nvl;
    private final long[] offsets;
    private final long[] rowBytes;

    CombineSources(HostNormalState state) {
        this.state = state;
        this.nvl = state.context.nvl();
        this.offsets = new long[state.topology.numNvlRanks()];
        this.rowBytes = new long[offsets.length];
    }

    void read(NormalHeaders headers) {
        for (int nvlRank = 0; nvlRank < offsets.length; nvlRank++) {
            int rank = state.nodeRank(nvlRank);
            offsets[nvlRank] = headers.field(rank, NormalHeader.X_OFFSET);
            rowBytes[nvlRank] = headers.field(rank, NormalHeader.X_ROW_BYTES);
        }
    }

    /** Adds row {@code row} of {@code nvlRank} to {@code sum}. */
    void addRow(RowSum sum, int nvlRank, int row) {
        sum.add(nvl.of(state.nodeRank(nvlRank)), offsets[nvlRank] + row * rowBytes[nvlRank]);
    }

    /** Adds the weights of row {@code row} of {@code nvlRank} to {@code sum}. */
    void addWeights(RowSum sum, int nvlRank, int row) {
        sum.add(nvl.of(state.nodeRank(nvlRank)), state.nvlLayout.combineWeights().at(row));
    }
}
