package io.deepep.normal.host;

import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Event;
import io.deepep.Fp8E4m3;
import io.deepep.Tensor;
import io.deepep.normal.NormalHeaders;
import io.deepep.spi.RecordedFacts;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The tensors of a dispatch's result: views of the receive region or memory of the plan's own. Made
 * anew only when the number of rows changes.
 */
final class DispatchOutputs {
    private final HostNormalState state;
    private final HostDispatchHandle handle;
    private final DType dtype;
    private final int hidden;
    private final int numScales;
    private final int numTopk;
    private final boolean weighted;
    private final boolean view;
    private final int alignment;
    private final int firstExpert;
    private final OutputMemory xMemory = new OutputMemory();
    private final OutputMemory scaleMemory = new OutputMemory();
    private final OutputMemory topkMemory = new OutputMemory();
    private final OutputMemory weightMemory = new OutputMemory();
    private final MemorySegment zeros;
    private final Tensor countsPerExpert;
    private final Tensor expertOffsets;
    private int rows = -1;
    private Tensor x;
    private Tensor scales;
    private Tensor topkIdx;
    private Tensor weights;
    private DispatchResult result;

    DispatchOutputs(HostNormalState state, HostDispatchHandle handle, DispatchPlan plan) {
        this.state = state;
        this.handle = handle;
        this.dtype = plan.x().dtype();
        this.hidden = (int) plan.x().size(1);
        this.numScales = dtype == DType.FP8_E4M3 ? hidden / Fp8E4m3.CHANNELS_PER_SCALE : 0;
        this.numTopk = plan.topkIdx() == null ? 0 : handle.numTopk();
        this.weighted = plan.topkWeights() != null;
        this.view = handle.groups() == null && plan.receive() == DispatchPlan.Receive.VIEW;
        this.alignment = plan.expertAlignment();
        this.zeros =
                handle.expanded()
                        ? Arena.ofAuto().allocate((long) dtype.sizeBytes() * hidden)
                        : null;
        int numLocalExperts = handle.numExperts() / state.topology.numRanks();
        this.firstExpert = numLocalExperts * state.topology.rank();
        this.countsPerExpert =
                numTopk == 0 ? null : Tensor.allocate(Arena.ofAuto(), DType.I32, numLocalExperts);
        this.expertOffsets =
                handle.expanded()
                        ? Tensor.allocate(Arena.ofAuto(), DType.I32, numLocalExperts + 1)
                        : null;
    }

    /** Makes tensors of {@code numRows} rows. */
    void shape(int numRows) {
        if (rows == numRows) {
            return;
        }
        rows = numRows;
        result = null;
        x = view ? regionView(dtype, hidden, 0) : own(xMemory, dtype, hidden);
        if (numScales > 0) {
            scales =
                    view
                            ? regionView(DType.F32, numScales, hidden)
                            : own(scaleMemory, DType.F32, numScales);
        }
        if (numTopk > 0 && !handle.expanded()) {
            topkIdx = own(topkMemory, DType.I64, numTopk);
        }
        if (weighted) {
            weights =
                    handle.expanded()
                            ? Tensor.of(weightMemory.ensure(4L * rows), DType.F32, rows)
                            : own(weightMemory, DType.F32, numTopk);
        }
    }

    private Tensor own(OutputMemory memory, DType type, int columns) {
        return Tensor.of(
                memory.ensure((long) type.sizeBytes() * rows * columns), type, rows, columns);
    }

    /** Columns of the receive region from {@code rowOffset} bytes into each row. */
    private Tensor regionView(DType type, int columns, long rowOffset) {
        var region = state.nvlLayout.dispatchRows();
        MemorySegment memory =
                state.context.nvl().local().asSlice(region.offset(), region.sizeBytes());
        long[] strides = {region.recordBytes() / type.sizeBytes(), 1};
        return Tensor.strided(memory.asSlice(rowOffset), type, new long[] {rows, columns}, strides);
    }

    /** Fills in the counts that the headers brought. */
    void setCounts(NormalHeaders headers) {
        if (countsPerExpert == null) {
            return;
        }
        for (int e = 0; e < countsPerExpert.size(0); e++) {
            int count = ExpertGroups.align(headers.numSelections(firstExpert + e), alignment);
            countsPerExpert.segment().set(ValueLayout.JAVA_INT, 4L * e, count);
        }
    }

    /** Fills in everything else, once the rows are there. */
    void finish() {
        if (handle.expanded()) {
            setOffsets();
            expand();
        } else {
            if (!view) {
                for (int row = 0; row < handle.numReceived(); row++) {
                    copyRow(row, row);
                }
            }
            if (numTopk > 0) {
                localise();
            }
        }
    }

    private void setOffsets() {
        for (int e = 0; e <= handle.groups().numLocalExperts(); e++) {
            expertOffsets.segment().set(ValueLayout.JAVA_INT, 4L * e, handle.groups().offset(e));
        }
    }

    private void expand() {
        ExpertGroups groups = handle.groups();
        MemorySegment memory = state.context.nvl().local();
        int numRows = groups.numRows();
        for (int row = 0; row < numRows; row++) {
            int received = groups.receivedRow(row);
            if (received < 0) {
                clearRow(row);
            } else {
                copyRow(received, row);
            }
            if (weighted) {
                float weight =
                        received < 0
                                ? 0
                                : memory.get(
                                        ValueLayout.JAVA_FLOAT_UNALIGNED,
                                        weightOffset(received, groups.selection(row)));
                weightMemory.segment().set(ValueLayout.JAVA_FLOAT, 4L * row, weight);
            }
        }
        if (weighted) {
            for (int row = numRows; row < rows; row++) {
                weightMemory.segment().set(ValueLayout.JAVA_FLOAT, 4L * row, 0);
            }
        }
    }

    private void copyRow(int received, int row) {
        MemorySegment memory = state.context.nvl().local();
        long from = state.nvlLayout.dispatchRows().at(received);
        long elementBytes = (long) dtype.sizeBytes() * hidden;
        MemorySegment.copy(memory, from, xMemory.segment(), row * elementBytes, elementBytes);
        if (numScales > 0) {
            MemorySegment.copy(
                    memory,
                    from + elementBytes,
                    scaleMemory.segment(),
                    4L * row * numScales,
                    4L * numScales);
        }
    }

    private void clearRow(int row) {
        long elementBytes = (long) dtype.sizeBytes() * hidden;
        MemorySegment.copy(zeros, 0, xMemory.segment(), row * elementBytes, elementBytes);
        if (numScales > 0) {
            MemorySegment.copy(
                    zeros, 0, scaleMemory.segment(), 4L * row * numScales, 4L * numScales);
        }
    }

    private long weightOffset(int received, int k) {
        return state.nvlLayout.recvMeta().at(received) + 4 + 4L * (numTopk + k);
    }

    /** Expert indices as this rank's own, -1 for the others and for rows that did not come. */
    private void localise() {
        MemorySegment memory = state.context.nvl().local();
        MemorySegment target = topkMemory.segment();
        int numLocalExperts = (int) countsPerExpert.size(0);
        for (int row = 0; row < rows; row++) {
            boolean received = row < handle.numReceived();
            for (int k = 0; k < numTopk; k++) {
                int local = -1;
                if (received) {
                    long at = state.nvlLayout.recvMeta().at(row) + 4 + 4L * k;
                    int expert = memory.get(ValueLayout.JAVA_INT_UNALIGNED, at) - firstExpert;
                    local = expert >= 0 && expert < numLocalExperts ? expert : -1;
                }
                long out = (long) row * numTopk + k;
                target.set(ValueLayout.JAVA_LONG, 8 * out, local);
                if (weighted) {
                    float weight =
                            local < 0
                                    ? 0
                                    : memory.get(
                                            ValueLayout.JAVA_FLOAT_UNALIGNED, weightOffset(row, k));
                    weightMemory.segment().set(ValueLayout.JAVA_FLOAT, 4 * out, weight);
                }
            }
        }
    }

    void describe(RecordedFacts facts) {
        if (countsPerExpert != null) {
            facts.experts(countsPerExpert.segment().toArray(ValueLayout.JAVA_INT));
        }
    }

    /** The tensors as a result; the same object while neither they nor the event change. */
    DispatchResult result(DispatchHandle handed, Event event) {
        if (result == null || !result.event().equals(event)) {
            result =
                    new DispatchResult(
                            x,
                            scales,
                            topkIdx,
                            weights,
                            countsPerExpert,
                            expertOffsets,
                            rows,
                            handed,
                            event);
        }
        return result;
    }
}
