package io.deepep.normal;

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

/**
 * The normal mode of one rank on one backend. A buffer calls it from one thread at a time and
 * orders the operations on its communication stream.
 *
 * <p>The prepare methods check a plan against the limits and the protocol ({@link
 * IllegalArgumentException}), and allocate what its runs need; running the operation allocates
 * nothing.
 */
public interface NormalKernels {
    /** Computes a layout on the calling thread; the result carries {@code event}. */
    DispatchLayout layout(Tensor topkIdx, int numExperts, Event event);

    /** Prepares a dispatch. */
    Operation<DispatchResult> prepareDispatch(DispatchPlan plan);

    /** Prepares a combine. */
    Operation<CombineResult> prepareCombine(CombinePlan plan);

    /**
     * Leaves a rank out of later calls, or takes it back; the same on all ranks that go on, none of
     * which is in a call.
     *
     * @throws UnsupportedOperationException unless {@link #canMask}
     */
    void updateMask(int rank, boolean masked);

    /** Whether this backend can leave ranks of this group out. */
    boolean canMask();

    /**
     * The ranks that the calls which failed since the last question show to be lost, beside those
     * that they named: ranks that did not come either, or that others have masked.
     */
    int[] takeSuspects();

    /** Which ranks are masked: [R], 1 for masked; a copy. */
    int[] queryMask();

    /** The epoch of the last call; none is under way. */
    int epoch();

    /**
     * Has the next call come after that of {@code epoch}, on all ranks, none of which is in a call:
     * to test what comes after days of calls.
     */
    void startAfter(int epoch);

    /** The combine input region as BF16 rows for {@code handle}. */
    Tensor combineBuffer(DispatchHandle handle);

    /** The same as FP8 rows. */
    ScaledRows fp8CombineBuffer(DispatchHandle handle);
}
