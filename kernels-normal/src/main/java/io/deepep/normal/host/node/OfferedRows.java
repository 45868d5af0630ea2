package io.deepep.normal.host.node;

import io.deepep.host.HostHeap;
import io.deepep.host.RowSum;
import io.deepep.normal.HeaderWord;
import io.deepep.normal.host.call.HeaderExchange;
import io.deepep.normal.host.call.HostNormalState;
import io.deepep.normal.host.routing.NodeRows;
import io.deepep.spi.Fault;
import io.deepep.spi.FaultCode;
import io.deepep.spi.FaultPhase;

/**
 * The rows that each rank of this node offers to the current combine: combine_peers.cuh in Java.
 */
public final class OfferedRows {
    private final HostNormalState state;
    private final SentRows sent;
    private final HostHeap nvl;
    private final long[] x;
    private final int[] xStride;
    private final long[] weights;
    private final int[] weightsStride;
    private final int[] numRows;

    public OfferedRows(HostNormalState state, SentRows sent) {
        int numRanks = state.topology.numNvlRanks();
        this.state = state;
        this.sent = sent;
        this.nvl = state.context.nvl();
        this.x = new long[numRanks];
        this.xStride = new int[numRanks];
        this.weights = new long[numRanks];
        this.weightsStride = new int[numRanks];
        this.numRows = new int[numRanks];
    }

    public void learn(HeaderExchange headers) {
        for (int nvlRank = 0; nvlRank < x.length; nvlRank++) {
            int rank = state.nodeRank(nvlRank);
            if (headers.isMasked(rank)) {
                continue; // no token has a row there
            }
            x[nvlRank] = headers.longOf(rank, HeaderWord.X_LOW);
            xStride[nvlRank] = headers.word(rank, HeaderWord.X_STRIDE);
            weights[nvlRank] = headers.longOf(rank, HeaderWord.WEIGHTS_LOW);
            weightsStride[nvlRank] = headers.word(rank, HeaderWord.WEIGHTS_STRIDE);
            numRows[nvlRank] = headers.word(rank, HeaderWord.ROW_LIMIT);
        }
    }

    /** Adds to {@code sum} a token's rows on this node. */
    public void addRows(RowSum sum, NodeRows rows, int node, int token) {
        for (int nvlRank = 0; nvlRank < x.length; nvlRank++) {
            int row = rows.row(node, token, nvlRank);
            if (row >= 0 && isOffered(nvlRank, row, token)) {
                sent.add(
                        sum,
                        nvl.of(state.nodeRank(nvlRank)),
                        x[nvlRank] + (long) row * xStride[nvlRank]);
            }
        }
    }

    /** Adds to {@code sum} their weights. */
    public void addWeights(RowSum sum, NodeRows rows, int node, int token) {
        for (int nvlRank = 0; nvlRank < x.length; nvlRank++) {
            int row = rows.row(node, token, nvlRank);
            if (row >= 0 && row < numRows[nvlRank]) {
                long at = weights[nvlRank] + (long) Float.BYTES * row * weightsStride[nvlRank];
                sum.add(nvl.of(state.nodeRank(nvlRank)), at);
            }
        }
    }

    private boolean isOffered(int nvlRank, int row, int token) {
        if (row < numRows[nvlRank]) {
            return true;
        }
        state.exchange.record(
                new Fault(
                        FaultCode.ROW_OUT_OF_RANGE,
                        FaultPhase.NONE,
                        state.topology.rank(),
                        state.nodeRank(nvlRank),
                        token,
                        -1,
                        numRows[nvlRank],
                        row));
        return false;
    }
}
