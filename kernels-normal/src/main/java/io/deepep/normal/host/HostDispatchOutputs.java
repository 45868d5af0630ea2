package io.deepep.normal.host;

import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Event;
import io.deepep.Tensor;
import io.deepep.normal.host.call.HeaderExchange;
import io.deepep.normal.host.call.HostNormalState;
import io.deepep.normal.host.routing.ExpertGroups;
import io.deepep.normal.host.routing.HostDispatchHandle;
import io.deepep.spi.RecordedFacts;
import io.deepep.spi.Region;
import io.deepep.spi.RowFormat;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The tensors of a dispatch's result: views of the receive region or memory of the plan's own. Made
 * again only when the number of rows changes.
 */
final class HostDispatchOutputs {
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;

    private final HostNormalState state;
    private final HostDispatchHandle handle;
    private final RowFormat row;
    private final Region receivedRows;
    private final int numTopk;
    private final boolean weighted;
    private final boolean view;
    private final int alignment;
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

    HostDispatchOutputs(HostNormalState state, HostDispatchHandle handle, DispatchPlan plan) {
        this.state = state;
        this.handle = handle;
        this.row = new RowFormat(plan.x().dtype(), (int) plan.x().size(1));
        this.receivedRows = state.nvlLayout.recvRows().of(row.strideBytes());
        this.numTopk = plan.topkIdx() == null ? 0 : handle.numTopk();
        this.weighted = plan.topkWeights() != null;
        this.view = handle.groups == null && plan.receive() == DispatchPlan.Receive.VIEW;
        this.alignment = plan.expertAlignment();
        this.zeros = handle.expanded() ? Arena.ofAuto().allocate(row.dataBytes()) : null;
        int numLocalExperts = handle.numExperts() / state.topology.numRanks();
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
        DType dtype = row.dtype();
        x = view ? regionView(dtype, row.hidden(), 0) : own(xMemory, dtype, row.hidden());
        if (row.numScales() > 0) {
            scales =
                    view
                            ? regionView(DType.F32, row.numScales(), row.elementBytes())
                            : own(scaleMemory, DType.F32, row.numScales());
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
        MemorySegment memory =
                state.context
                        .nvl()
                        .local()
                        .asSlice(receivedRows.offset(), receivedRows.sizeBytes());
        long[] strides = {row.strideBytes() / type.sizeBytes(), 1};
        return Tensor.strided(memory.asSlice(rowOffset), type, new long[] {rows, columns}, strides);
    }

    /** Fills in the counts that the headers brought. */
    void setCounts(HeaderExchange headers) {
        if (countsPerExpert == null) {
            return;
        }
        for (int e = 0; e < countsPerExpert.size(0); e++) {
            long count = ExpertGroups.align(headers.selections(e), alignment);
            int shown = (int) Math.min(count, Integer.MAX_VALUE);
            countsPerExpert.segment().set(ValueLayout.JAVA_INT, 4L * e, shown);
        }
    }

    /** Fills in everything else, once the rows are there. */
    void finish() {
        if (handle.expanded()) {
            setOffsets();
            expand();
        } else {
            if (!view) {
                for (int i = 0; i < handle.numReceived(); i++) {
                    copyRow(i, i);
                }
            }
            if (numTopk > 0) {
                copyMetadata();
            }
        }
    }

    private void setOffsets() {
        for (int e = 0; e <= handle.groups.numLocalExperts(); e++) {
            expertOffsets.segment().set(ValueLayout.JAVA_INT, 4L * e, handle.groups.offset(e));
        }
    }

    private void expand() {
        ExpertGroups groups = handle.groups;
        MemorySegment memory = state.context.nvl().local();
        int numRows = groups.numRows();
        for (int to = 0; to < numRows; to++) {
            int received = groups.receivedRow(to);
            if (received < 0) {
                copyRow(zeros, 0, to);
            } else {
                copyRow(received, to);
            }
            if (weighted) {
                float weight =
                        received < 0
                                ? 0
                                : memory.get(
                                        FLOAT,
                                        handle.recvWeights.at(received)
                                                + 4L * groups.selection(to));
                weightMemory.segment().set(ValueLayout.JAVA_FLOAT, 4L * to, weight);
            }
        }
        if (weighted) {
            for (int to = numRows; to < rows; to++) {
                weightMemory.segment().set(ValueLayout.JAVA_FLOAT, 4L * to, 0);
            }
        }
    }

    private void copyRow(int received, int to) {
        copyRow(state.context.nvl().local(), receivedRows.at(received), to);
    }

    private void copyRow(MemorySegment memory, long from, int to) {
        long elements = row.elementBytes();
        MemorySegment.copy(memory, from, xMemory.segment(), to * elements, elements);
        if (row.numScales() > 0) {
            long scaleBytes = row.scaleBytes();
            MemorySegment.copy(
                    memory, from + elements, scaleMemory.segment(), to * scaleBytes, scaleBytes);
        }
    }

    /** Local experts and their weights; -1 and 0 for rows that did not come. */
    private void copyMetadata() {
        MemorySegment memory = state.context.nvl().local();
        MemorySegment target = topkMemory.segment();
        for (int i = 0; i < rows; i++) {
            boolean received = i < handle.numReceived();
            long topkAt = received ? handle.recvTopk.at(i) : 0;
            long weightsAt = received ? handle.recvWeights.at(i) : 0;
            for (int k = 0; k < numTopk; k++) {
                long to = (long) i * numTopk + k;
                int expert = received ? memory.get(INT, topkAt + 4L * k) : -1;
                target.set(ValueLayout.JAVA_LONG, 8 * to, expert);
                if (weighted) {
                    float weight = received ? memory.get(FLOAT, weightsAt + 4L * k) : 0;
                    weightMemory.segment().set(ValueLayout.JAVA_FLOAT, 4 * to, weight);
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
