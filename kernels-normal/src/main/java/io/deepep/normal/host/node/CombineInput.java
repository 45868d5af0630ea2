package io.deepep.normal.host.node;

import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.Tensor;
import io.deepep.host.RowSum;
import io.deepep.normal.HeaderWord;
import io.deepep.normal.NormalChecks;
import io.deepep.normal.NormalRows;
import io.deepep.normal.host.call.HeaderExchange;
import io.deepep.normal.host.call.HostNormalState;
import io.deepep.normal.host.routing.HostDispatchHandle;
import io.deepep.spi.Region;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Brings a combine's input where peers can read it. Rows that lie in this rank's NVL memory as they
 * travel stay where they are; others are copied into the combine region, and the rows of a token in
 * the expanded layout are summed there (fp32, in the order of selections, rounded once). In a
 * format other than theirs, rows are cast into it.
 */
public final class CombineInput {
    private final HostNormalState state;
    private final HostDispatchHandle handle;
    private final MemorySegment x;
    private final long rowBytes;
    private final GivenRows given;
    private final SentRows sent;
    private final MemorySegment weights;
    private final Region rows;
    private final Region weightRows;
    private final boolean inPlace;
    private final RowSum sum;

    public CombineInput(
            HostNormalState state, HostDispatchHandle handle, CombinePlan plan, SentRows sent) {
        this.state = state;
        this.handle = handle;
        this.x = plan.x().segment();
        this.rowBytes = plan.x().stride(0) * plan.x().dtype().sizeBytes();
        this.given = new GivenRows(plan.x(), plan.scales());
        this.sent = sent;
        Tensor ofRows = plan.topkWeights();
        this.weights = ofRows == null ? null : ofRows.segment();
        this.rows = state.nvlLayout.combineRows().of(sent.format.strideBytes());
        this.weightRows =
                ofRows == null
                        ? null
                        : state.nvlLayout
                                .combineWeights()
                                .of((long) Float.BYTES * handle.numTopk());
        this.sum = new RowSum(Math.max(1, handle.numTopk()), plan.hidden());
        this.inPlace =
                !handle.expanded()
                        && NormalRows.travelAsTheyAre(plan)
                        && state.nvlContains(plan.x());
        if (handle.expanded() || (plan.format() == CombineFormat.FP8 && !inPlace)) {
            NormalChecks.combineFromElsewhere(plan, state.nvlLayout, state.nvlAddress());
        }
    }

    /** Says where this rank's rows lie. */
    public void offer(HeaderExchange headers) {
        headers.set(HeaderWord.ROW_LIMIT, handle.numReceived());
        headers.setLong(
                HeaderWord.X_LOW, inPlace ? x.address() - state.nvlAddress() : rows.offset());
        headers.set(HeaderWord.X_STRIDE, (int) (inPlace ? rowBytes : rows.recordBytes()));
        headers.setLong(HeaderWord.WEIGHTS_LOW, state.nvlLayout.combineWeights().offset());
        headers.set(HeaderWord.WEIGHTS_STRIDE, handle.numTopk());
    }

    /**
     * Stages what has to be. Nobody reads the combine region any more: the combine before ended
     * with a barrier.
     */
    public void stage() {
        MemorySegment target = state.context.nvl().local();
        int numRows = handle.numReceived();
        if (handle.expanded()) {
            for (int row = 0; row < numRows; row++) {
                sumSelections(row, target);
            }
        } else if (!inPlace) {
            copyRows(numRows, target);
        }
        if (weights != null) {
            for (int row = 0; row < numRows; row++) {
                stageWeights(row, target);
            }
        }
    }

    private void copyRows(int numRows, MemorySegment target) {
        boolean cast = !given.format.equals(sent.format);
        if (!cast && rowBytes == given.format.elementBytes() && rowBytes == rows.recordBytes()) {
            // One long copy passes the caches by, which saves reading the target's lines.
            MemorySegment.copy(x, 0, target, rows.offset(), numRows * rowBytes);
            return;
        }
        for (int row = 0; row < numRows; row++) {
            if (cast) {
                sent.put(x, row * rowBytes, target, rows.at(row));
            } else {
                given.write(row, target, rows.at(row));
            }
        }
    }

    private void sumSelections(int row, MemorySegment target) {
        sum.clear();
        for (int k = 0; k < handle.numTopk(); k++) {
            int expanded = handle.groups.expandedRow(row, k);
            if (expanded >= 0) {
                sum.add(x, expanded * rowBytes);
            }
        }
        sent.put(sum, target, rows.at(row));
    }

    private void stageWeights(int row, MemorySegment target) {
        long at = weightRows.at(row);
        int numTopk = handle.numTopk();
        if (!handle.expanded()) {
            MemorySegment.copy(weights, 4L * row * numTopk, target, at, 4L * numTopk);
            return;
        }
        for (int k = 0; k < numTopk; k++) {
            int expanded = handle.groups.expandedRow(row, k);
            float weight =
                    expanded < 0 ? 0 : weights.get(ValueLayout.JAVA_FLOAT_UNALIGNED, 4L * expanded);
            target.set(ValueLayout.JAVA_FLOAT_UNALIGNED, at + 4L * k, weight);
        }
    }
}
