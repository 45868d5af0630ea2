package io.deepep.normal.cuda;

import io.deepep.DispatchPlan;
import io.deepep.cuda.memory.DevicePool;
import io.deepep.normal.NormalHandle;

/** The routing of one plan's latest dispatch, in the memory of its GPU. */
final class CudaDispatchHandle extends NormalHandle {
    /** i32 [T][R]: row of each token at each rank, or -1; null across nodes. */
    final DevicePool.Block tokenRows;

    /** The same across nodes, and what this rank forwards; null on one node. */
    final InternodeRouting routing;

    /** i32: rows received. */
    final DevicePool.Block numRows;

    /** i32 [R + 1]: rows of source s are [s] .. [s + 1]; null across nodes. */
    final DevicePool.Block sourceRows;

    /** u64: epoch of the call that the routing is of, as the GPU saw it end; 0 if it failed. */
    final DevicePool.Block epoch;

    /** i32 [El]: selections of each local expert; null without top-k. */
    final DevicePool.Block rawCounts;

    /** i32 [capacity][K]: expanded row of each selection; null unless expanded. */
    final DevicePool.Block expandedRows;

    /** i32 [El + 1]: where the rows of each local expert begin; null unless expanded. */
    final DevicePool.Block expertOffsets;

    /** What observers learn of the dispatch; null if it was not observed. */
    DispatchTrace trace;

    /** Of a plan without a handle. */
    CudaDispatchHandle(CudaNormalState owner, DispatchPlan plan) {
        super(owner, plan);
        int numRanks = owner.topology.numRanks();
        boolean internode = owner.topology.isInternode();
        this.tokenRows = internode ? null : owner.memory.allocate(4L * numTokens() * numRanks);
        this.routing = internode ? InternodeRouting.allocate(owner, numTokens()) : null;
        this.numRows = owner.memory.allocateZeroed(4);
        this.sourceRows = owner.memory.allocateZeroed(4L * (numRanks + 1 + 2 * numRanks));
        this.epoch = owner.memory.allocateZeroed(8);
        this.rawCounts =
                numTopk() == 0 ? null : owner.memory.allocateZeroed(4L * numLocalExperts());
        this.expandedRows =
                expanded()
                        ? owner.memory.allocate(4L * owner.nvlLayout.capacity() * numTopk())
                        : null;
        this.expertOffsets =
                expanded() ? owner.memory.allocate(4L * (numLocalExperts() + 1)) : null;
    }
}
