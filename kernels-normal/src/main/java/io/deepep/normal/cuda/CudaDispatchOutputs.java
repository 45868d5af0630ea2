package io.deepep.normal.cuda;

import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Event;
import io.deepep.Tensor;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.kernel.StatusStruct;
import io.deepep.cuda.memory.DevicePool;
import io.deepep.cuda.memory.PinnedSlots;
import io.deepep.spi.RecordedFacts;
import io.deepep.spi.RowFormat;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * What a dispatch hands out: views of the heap, or memory of its own that grows with what arrives.
 */
final class CudaDispatchOutputs {
    /** Of the counts per expert, behind the status block in the slot. */
    private static final long COUNTS_OFFSET = StatusStruct.BLOCK.numBytes();

    private final CudaNormalState state;
    private final CudaDispatchHandle handle;
    private final DispatchPlan plan;
    private final PinnedSlots.Slot slot;
    private final boolean cached;
    private final boolean topk;
    private final boolean copies;
    private final Tensor counts;
    private final DevicePool.Block topkIdx;
    private final DevicePool.Block topkWeights;
    private DevicePool.Block rows;
    private DevicePool.Block scales;
    private DevicePool.Block expandedWeights;
    private int numRows = -1;
    private Tensor recvX;
    private Tensor recvScales;
    private Tensor recvTopkIdx;
    private Tensor recvTopkWeights;
    private DispatchResult result;

    CudaDispatchOutputs(
            CudaNormalState state,
            CudaDispatchHandle handle,
            DispatchPlan plan,
            PinnedSlots.Slot slot) {
        this.state = state;
        this.handle = handle;
        this.plan = plan;
        this.slot = slot;
        this.cached = plan.handle() != null;
        this.topk = plan.topkIdx() != null;
        this.copies = handle.expanded() || plan.receive() == DispatchPlan.Receive.COPY;
        long metaRows =
                handle.numWorstTokens() > 0 ? handle.numWorstTokens() : state.nvlLayout.capacity();
        boolean meta = topk && !handle.expanded();
        boolean weights = plan.topkWeights() != null;
        this.topkIdx = meta ? state.memory.allocate(8 * metaRows * handle.numTopk()) : null;
        this.topkWeights =
                meta && weights ? state.memory.allocate(4 * metaRows * handle.numTopk()) : null;
        this.counts =
                topk ? Tensor.allocate(Arena.ofAuto(), DType.I32, handle.numLocalExperts()) : null;
    }

    /** Bytes of the slot that {@code plan} needs. */
    static long slotBytes(CudaDispatchHandle handle) {
        return COUNTS_OFFSET + 4L * handle.numLocalExperts();
    }

    boolean copies() {
        return copies;
    }

    /** Rows that may arrive here. */
    int rowLimit() {
        int capacity = state.nvlLayout.capacity();
        boolean limited = handle.numWorstTokens() > 0 && !handle.expanded();
        return limited ? Math.min(capacity, handle.numWorstTokens()) : capacity;
    }

    /** Tells the dispatch kernel where routing goes. */
    void fill(Params params) {
        params.set("out_topk_idx", topkIdx == null ? 0 : topkIdx.address())
                .set("out_topk_weights", topkWeights == null ? 0 : topkWeights.address())
                .set("host_expert_counts", slot.deviceAddress() + COUNTS_OFFSET)
                .setInt("num_worst_rows", topkIdx == null ? 0 : handle.numWorstTokens());
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

    /** The counts that {@link #copyCounts} brought. */
    void describe(RecordedFacts facts) {
        if (counts != null) {
            facts.experts(counts.segment().toArray(ValueLayout.JAVA_INT));
        }
    }

    /** Makes the tensors of a result of {@code newRows} rows; nothing if it had as many before. */
    void shape(int newRows) {
        if (numRows == newRows) {
            return;
        }
        numRows = newRows;
        result = null;
        DType dtype = plan.x().dtype();
        int hidden = handle.hidden();
        RowFormat row = new RowFormat(dtype, hidden);
        int numScales = row.numScales();
        if (copies) {
            rows = ensure(rows, (long) newRows * hidden * dtype.sizeBytes());
            recvX = rows.tensor(dtype, newRows, hidden);
            scales = numScales == 0 ? null : ensure(scales, 4L * newRows * numScales);
            recvScales = numScales == 0 ? null : scales.tensor(DType.F32, newRows, numScales);
        } else {
            long stride = row.strideBytes();
            recvX = heapRows(0, dtype, hidden, stride);
            recvScales =
                    numScales == 0
                            ? null
                            : heapRows(row.elementBytes(), DType.F32, numScales, stride);
        }
        boolean weights = plan.topkWeights() != null;
        recvTopkIdx = topkIdx == null ? null : topkIdx.tensor(DType.I64, newRows, handle.numTopk());
        recvTopkWeights =
                topkWeights == null
                        ? null
                        : topkWeights.tensor(DType.F32, newRows, handle.numTopk());
        if (handle.expanded() && weights) {
            expandedWeights = ensure(expandedWeights, 4L * newRows);
            recvTopkWeights = expandedWeights.tensor(DType.F32, newRows);
        }
    }

    private DevicePool.Block ensure(DevicePool.Block memory, long bytes) {
        return memory != null && memory.numBytes() >= bytes ? memory : state.memory.allocate(bytes);
    }

    private Tensor heapRows(long offset, DType dtype, int columns, long stride) {
        var region = state.nvlLayout.recvRows();
        return Tensor.onDevice(
                state.context.device(),
                state.heap() + region.offset() + offset,
                region.sizeBytes() - offset,
                dtype,
                new long[] {numRows, columns},
                new long[] {stride / dtype.sizeBytes(), 1});
    }

    Tensor recvX() {
        return recvX;
    }

    Tensor recvScales() {
        return recvScales;
    }

    /** F32 [M] of the expanded layout, or null. */
    DevicePool.Block expandedWeights() {
        return expandedWeights;
    }

    DispatchResult result(Event event) {
        if (result == null || !result.event().equals(event)) {
            Tensor expertOffsets =
                    handle.expanded()
                            ? handle.expertOffsets.tensor(DType.I32, handle.numLocalExperts() + 1)
                            : null;
            result =
                    new DispatchResult(
                            recvX,
                            recvScales,
                            recvTopkIdx,
                            recvTopkWeights,
                            cached ? null : counts,
                            expertOffsets,
                            numRows,
                            handle,
                            event);
        }
        return result;
    }
}
