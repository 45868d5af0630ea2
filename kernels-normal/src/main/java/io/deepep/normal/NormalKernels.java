package io.deepep.normal;

import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DispatchHandle;
import io.deepep.DispatchLayout;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Event;
import io.deepep.ScaledRows;
import io.deepep.Tensor;
import io.deepep.spi.Operation;
import io.deepep.spi.Region;
import io.deepep.spi.RowFormat;

/**
 * The normal mode of one rank on one backend. A buffer calls it from one thread at a time and
 * orders the operations on its communication stream.
 *
 * <p>The prepare methods check a plan against the limits and the protocol ({@link
 * IllegalArgumentException}), and allocate what its runs need; running the operation allocates
 * nothing.
 */
public abstract class NormalKernels {
    private final NormalState state;

    protected NormalKernels(NormalState state) {
        this.state = state;
    }

    /** Computes a layout on the calling thread; the result carries {@code event}. */
    public abstract DispatchLayout layout(Tensor topkIdx, int numExperts, Event event);

    /** Prepares a dispatch. */
    public abstract Operation<DispatchResult> prepareDispatch(DispatchPlan plan);

    /** Prepares a combine. */
    public abstract Operation<CombineResult> prepareCombine(CombinePlan plan);

    /**
     * Leaves a rank out of later calls, or takes it back; the same on all ranks that go on, none of
     * which is in a call.
     *
     * @throws UnsupportedOperationException unless {@link #canMask}
     */
    public abstract void updateMask(int rank, boolean masked);

    /** Whether this backend can leave ranks of this group out. */
    public abstract boolean canMask();

    /**
     * The ranks that the calls which failed since the last question show to be lost, beside those
     * that they named: ranks that did not come either, or that others have masked.
     */
    public final int[] takeSuspects() {
        return state.masks.takeSuspects();
    }

    /** Which ranks are masked: [R], 1 for masked; a copy. */
    public final int[] queryMask() {
        return state.masks.toArray();
    }

    /** The epoch of the last call; none is under way. */
    public abstract int epoch();

    /**
     * Has the next call come after that of {@code epoch}, on all ranks, none of which is in a call:
     * to test what comes after days of calls.
     */
    public abstract void startAfter(int epoch);

    /** The combine input region as BF16 rows for {@code handle}. */
    public final Tensor combineBuffer(DispatchHandle handle) {
        NormalHandle mine = state.own(handle);
        NormalChecks.combineBuffer(mine, CombineFormat.BF16);
        RowFormat format = RowFormat.bf16(mine.hidden());
        return state.elements(state.nvlLayout.combineRows(), format, mine.numResultRows());
    }

    /** The same as FP8 rows. */
    public final ScaledRows fp8CombineBuffer(DispatchHandle handle) {
        NormalHandle mine = state.own(handle);
        NormalChecks.combineBuffer(mine, CombineFormat.FP8);
        RowFormat format = RowFormat.fp8(mine.hidden());
        Region region = state.nvlLayout.combineRows();
        return new ScaledRows(
                state.elements(region, format, mine.numResultRows()),
                state.scales(region, format, mine.numResultRows()));
    }
}
