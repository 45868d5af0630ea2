package io.deepep.normal.host;

import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.Tensor;
import io.deepep.host.HostHeap;
import io.deepep.normal.DispatchOutputs;
import io.deepep.normal.host.call.HeaderExchange;
import io.deepep.normal.host.call.HostNormalState;
import io.deepep.normal.host.routing.ExpertGroups;
import io.deepep.normal.host.routing.HostDispatchHandle;
import io.deepep.spi.Region;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** What a dispatch hands out on the host. */
final class HostDispatchOutputs extends DispatchOutputs<HostOutputMemory> {
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;

    private final HostHeap nvl;
    private final HostDispatchHandle handle;
    private final Region receivedRows;
    private final int alignment;
    private final MemorySegment zeros;

    HostDispatchOutputs(HostNormalState state, HostDispatchHandle handle, DispatchPlan plan) {
        super(state, handle, plan, offsets(handle), HostOutputMemory::new);
        this.nvl = state.context.nvl();
        this.handle = handle;
        this.receivedRows = state.nvlLayout.recvRows().of(row.strideBytes());
        this.alignment = plan.expertAlignment();
        this.zeros = handle.expanded() ? Arena.ofAuto().allocate(row.dataBytes()) : null;
    }

    private static Tensor offsets(HostDispatchHandle handle) {
        return handle.expanded()
                ? Tensor.allocate(Arena.ofAuto(), DType.I32, handle.numLocalExperts() + 1)
                : null;
    }

    /** Fills in the counts that the headers brought. */
    void setCounts(HeaderExchange headers) {
        if (counts == null) {
            return;
        }
        for (int e = 0; e < counts.size(0); e++) {
            long count = ExpertGroups.align(headers.selections(e), alignment);
            int shown = (int) Math.min(count, Integer.MAX_VALUE);
            counts.segment().set(ValueLayout.JAVA_INT, 4L * e, shown);
        }
    }

    /** Fills in everything else, once the rows are there. */
    void finish() {
        if (handle.expanded()) {
            setOffsets();
            expand();
        } else {
            if (copies) {
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
        MemorySegment memory = nvl.local();
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
                topkWeights().segment().set(ValueLayout.JAVA_FLOAT, 4L * to, weight);
            }
        }
        if (weighted) {
            for (int to = numRows; to < numRows(); to++) {
                topkWeights().segment().set(ValueLayout.JAVA_FLOAT, 4L * to, 0);
            }
        }
    }

    private void copyRow(int received, int to) {
        copyRow(nvl.local(), receivedRows.at(received), to);
    }

    private void copyRow(MemorySegment memory, long from, int to) {
        long elements = row.elementBytes();
        MemorySegment.copy(memory, from, x().segment(), to * elements, elements);
        if (row.numScales() > 0) {
            long scaleBytes = row.scaleBytes();
            MemorySegment.copy(
                    memory, from + elements, scales().segment(), to * scaleBytes, scaleBytes);
        }
    }

    /** Local experts and their weights; -1 and 0 for rows that did not come. */
    private void copyMetadata() {
        MemorySegment memory = nvl.local();
        MemorySegment target = topkIdx().segment();
        for (int i = 0; i < numRows(); i++) {
            boolean received = i < handle.numReceived();
            long topkAt = received ? handle.recvTopk.at(i) : 0;
            long weightsAt = received ? handle.recvWeights.at(i) : 0;
            for (int k = 0; k < numTopk; k++) {
                long to = (long) i * numTopk + k;
                int expert = received ? memory.get(INT, topkAt + 4L * k) : -1;
                target.set(ValueLayout.JAVA_LONG, 8 * to, expert);
                if (weighted) {
                    float weight = received ? memory.get(FLOAT, weightsAt + 4L * k) : 0;
                    topkWeights().segment().set(ValueLayout.JAVA_FLOAT, 4 * to, weight);
                }
            }
        }
    }
}
