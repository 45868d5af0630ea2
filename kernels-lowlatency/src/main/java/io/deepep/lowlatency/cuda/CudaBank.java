package io.deepep.lowlatency.cuda;

import io.deepep.LowLatencyLimits;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.memory.DevicePool;
import io.deepep.lowlatency.DispatchBank;

/** A bank in a GPU's memory. */
final class CudaBank extends DispatchBank {
    /** {@code Bank} of lowlatency_structs.cuh. */
    final DevicePool.Block struct;

    final DevicePool.Block selections;

    /** I32 [maxTokens * maxTopk]: the indices that were dispatched. */
    final DevicePool.Block sentTopkIdx;

    /** U32 [maxTokens * maxTopk]: where a network brings the results of these. */
    final DevicePool.Block sentItems;

    /** {@code RowSelection} [R][maxTokens][maxTopk] of such a dispatch. */
    final DevicePool.Block rowSelections;

    /** U32 [R][maxTokens] of such a dispatch: the rows' tokens. */
    final DevicePool.Block rowTokens;

    CudaBank(LowLatencyLimits limits, int numRanks, DevicePool memory, CudaStream stream) {
        super(limits, numRanks, memory);
        // An engine's kernels may read them before the host learns that the first dispatch failed.
        stream.fillBytes(count().address(), (byte) 0, count().capacityBytes());
        long numSelections = (long) limits.maxTokens() * limits.maxTopk();
        struct = memory.allocateZeroed(LowLatencyStructs.of(numRanks).bank.numBytes());
        // Zeroed: of a source that is lost, rows may be looked at that have never come.
        selections =
                memory.allocateZeroed(
                        LowLatencyStructs.SELECTION.numBytes() * numRanks * numSelections);
        sentTopkIdx = memory.allocate(Integer.BYTES * numSelections);
        sentItems = memory.allocateZeroed(Integer.BYTES * numSelections);
        rowSelections =
                memory.allocateZeroed(
                        LowLatencyStructs.ROW_SELECTION.numBytes() * numRanks * numSelections);
        rowTokens = memory.allocateZeroed((long) Integer.BYTES * numSlots());
    }
}
