package io.deepep.normal;

import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DispatchHandle;
import io.deepep.DispatchLayout;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Event;
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

    /** The combine input region as BF16 rows for {@code handle}. */
    Tensor combineBuffer(DispatchHandle handle);
}
