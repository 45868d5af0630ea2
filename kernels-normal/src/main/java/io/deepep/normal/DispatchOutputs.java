package io.deepep.normal;

import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Event;
import io.deepep.Tensor;
import io.deepep.spi.RecordedFacts;
import io.deepep.spi.Region;
import io.deepep.spi.RowFormat;
import io.deepep.spi.TensorMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.function.Supplier;

/**
 * The tensors of a dispatch's result: views of the receive region or memory of the plan's own. Made
 * again only when the number of rows changes.
 *
 * @param <M> a backend's memory
 */
public abstract class DispatchOutputs<M extends TensorMemory> {
    protected final RowFormat row;

    /** 0 without top-k, and with a handle. */
    protected final int numTopk;

    protected final boolean weighted;

    /** Whether rows are copied out of the receive region. */
    protected final boolean copies;

    protected final M topkMemory;
    protected final M weightMemory;

    /** I32 [El] on the host, or null. */
    protected final Tensor counts;

    /** I32 [El + 1] of the expanded layout, or null. */
    protected final Tensor expertOffsets;

    private final NormalState state;
    private final NormalHandle handle;
    private final M xMemory;
    private final M scaleMemory;
    private int numRows = -1;
    private Tensor x;
    private Tensor scales;
    private Tensor topkIdx;
    private Tensor topkWeights;
    private DispatchResult result;

    /** Of a plan with {@code handle}, be that its own or another's. */
    protected DispatchOutputs(
            NormalState state,
            NormalHandle handle,
            DispatchPlan plan,
            Tensor expertOffsets,
            Supplier<M> memory) {
        this.state = state;
        this.handle = handle;
        this.row = new RowFormat(plan.x().dtype(), handle.hidden());
        this.numTopk = plan.topkIdx() == null ? 0 : handle.numTopk();
        this.weighted = plan.topkWeights() != null;
        this.copies = handle.expanded() || plan.receive() == DispatchPlan.Receive.COPY;
        this.counts =
                numTopk == 0
                        ? null
                        : Tensor.allocate(Arena.ofAuto(), DType.I32, handle.numLocalExperts());
        this.expertOffsets = expertOffsets;
        this.xMemory = memory.get();
        this.scaleMemory = memory.get();
        this.topkMemory = memory.get();
        this.weightMemory = memory.get();
    }

    /** Rows that may arrive here. */
    public final int rowLimit() {
        int capacity = state.nvlLayout.capacity();
        boolean limited = handle.numWorstTokens() > 0 && !handle.expanded();
        return limited ? Math.min(capacity, handle.numWorstTokens()) : capacity;
    }

    /** Makes tensors of so many rows. */
    public final void shape(int newRows) {
        if (numRows == newRows) {
            return;
        }
        numRows = newRows;
        result = null;
        Region received = state.nvlLayout.recvRows();
        x =
                copies
                        ? xMemory.tensor(row.dtype(), numRows, row.hidden())
                        : state.elements(received, row, numRows);
        if (row.numScales() > 0) {
            scales =
                    copies
                            ? scaleMemory.tensor(DType.F32, numRows, row.numScales())
                            : state.scales(received, row, numRows);
        }
        if (numTopk > 0 && !handle.expanded()) {
            topkIdx = topkMemory.tensor(DType.I64, numRows, numTopk);
        }
        if (weighted) {
            topkWeights =
                    handle.expanded()
                            ? weightMemory.tensor(DType.F32, numRows)
                            : weightMemory.tensor(DType.F32, numRows, numTopk);
        }
    }

    public final int numRows() {
        return numRows;
    }

    public final Tensor x() {
        return x;
    }

    /** F32, or null. */
    public final Tensor scales() {
        return scales;
    }

    /** I64 [rows][K], or null. */
    public final Tensor topkIdx() {
        return topkIdx;
    }

    /** F32 [rows][K], in the expanded layout [rows]; or null. */
    public final Tensor topkWeights() {
        return topkWeights;
    }

    public final void describe(RecordedFacts facts) {
        if (counts != null) {
            facts.experts(counts.segment().toArray(ValueLayout.JAVA_INT));
        }
    }

    /** The tensors as a result; the same object while neither they nor the event change. */
    public final DispatchResult result(Event event) {
        if (result == null || !result.event().equals(event)) {
            result =
                    new DispatchResult(
                            x,
                            scales,
                            topkIdx,
                            topkWeights,
                            counts,
                            expertOffsets,
                            numRows,
                            handle,
                            event);
        }
        return result;
    }
}
