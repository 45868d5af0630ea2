package io.deepep.normal.cuda;

import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.Tensor;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.kernel.StatusStruct;
import io.deepep.cuda.memory.PinnedSlots;
import io.deepep.normal.DispatchOutputs;
import java.lang.foreign.MemorySegment;

/** What a dispatch hands out on a GPU. */
final class CudaDispatchOutputs extends DispatchOutputs<CudaOutputMemory> {
    /** Of the counts per expert, behind the status block in the slot. */
    private static final long COUNTS_OFFSET = StatusStruct.BLOCK.numBytes();

    private final CudaDispatchHandle handle;
    private final PinnedSlots.Slot slot;

    CudaDispatchOutputs(
            CudaNormalState state,
            CudaDispatchHandle handle,
            DispatchPlan plan,
            PinnedSlots.Slot slot) {
        super(state, handle, plan, offsets(handle), () -> new CudaOutputMemory(state.memory));
        this.handle = handle;
        this.slot = slot;
        if (numTopk > 0 && !handle.expanded()) {
            // Where the kernel writes before the host knows how many rows there are.
            long selections = (long) rowLimit() * numTopk;
            topkMemory.reserve(Long.BYTES * selections);
            if (weighted) {
                weightMemory.reserve(Float.BYTES * selections);
            }
        }
    }

    private static Tensor offsets(CudaDispatchHandle handle) {
        return handle.expanded()
                ? handle.expertOffsets.tensor(DType.I32, handle.numLocalExperts() + 1)
                : null;
    }

    /** Bytes of the slot that a dispatch needs. */
    static long slotBytes(CudaDispatchHandle handle) {
        return COUNTS_OFFSET + 4L * handle.numLocalExperts();
    }

    boolean copies() {
        return copies;
    }

    /** Tells the dispatch kernel where routing goes. */
    void fill(Params params) {
        params.set("out_topk_idx", topkMemory.address())
                .set("out_topk_weights", weightMemory.address())
                .set("host_expert_counts", slot.deviceAddress() + COUNTS_OFFSET)
                .setInt("num_worst_rows", handle.expanded() ? 0 : handle.numWorstTokens());
        if (handle.expanded()) {
            params.setInt("expanded_limit", handle.numWorstTokens());
        }
    }

    /** Takes the counts over from mapped memory, which the next owner of the slot may overwrite. */
    void copyCounts() {
        if (counts != null) {
            MemorySegment.copy(
                    slot.page().segment(),
                    slot.offset() + COUNTS_OFFSET,
                    counts.segment(),
                    0,
                    4L * handle.numLocalExperts());
        }
    }
}
