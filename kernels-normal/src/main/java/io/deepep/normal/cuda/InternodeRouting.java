package io.deepep.normal.cuda;

import io.deepep.EpTopology;
import io.deepep.cuda.memory.DevicePool;
import io.deepep.normal.NormalRdmaLayout;
import io.deepep.normal.Rails;

/**
 * The routing of a dispatch across nodes, as rows of a token at the ranks of a node: {@code
 * NodeRows}, -1 where it does not go.
 *
 * @param ownRows [nodes][T] rows of this rank's tokens
 * @param forwardRows [cells][maxTokens] rows, on this node, of the tokens that this rank forwards
 * @param sourceTokens i32 [cells]: tokens of the ranks that these are of
 */
record InternodeRouting(
        DevicePool.Block ownRows, DevicePool.Block forwardRows, DevicePool.Block sourceTokens) {
    static InternodeRouting allocate(CudaNormalState state, int numTokens) {
        EpTopology topology = state.topology;
        return new InternodeRouting(
                state.memory.allocate(ownRowsBytes(topology, numTokens)),
                state.memory.allocate(bytes(topology, state.limits.maxTokens())),
                state.memory.allocate(4L * Rails.numCells(topology)));
    }

    /** Bytes of the routing of {@code maxTokens} tokens, and of the order of tokens, for a pool. */
    static long bytes(EpTopology topology, int maxTokens) {
        return (long) Rails.numCells(topology) * maxTokens * rowsBytes(topology);
    }

    /** Bytes of the own tokens' rows on all nodes. */
    static long ownRowsBytes(EpTopology topology, int numTokens) {
        return (long) topology.numRdmaRanks() * numTokens * rowsBytes(topology);
    }

    /** Bytes from the rows of one token at a node to those of the next. */
    static int rowsBytes(EpTopology topology) {
        return Integer.BYTES * NormalRdmaLayout.nodeRows(topology);
    }
}
