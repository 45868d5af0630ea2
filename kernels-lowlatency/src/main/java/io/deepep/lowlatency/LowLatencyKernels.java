package io.deepep.lowlatency;

import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;
import io.deepep.spi.Operation;

/**
 * The low-latency mode of one rank on one backend. A buffer calls it from one thread at a time and
 * orders the operations on its communication stream.
 *
 * <p>The prepare methods check a plan against the limits ({@link IllegalArgumentException}), and
 * allocate what its runs need; running the operation allocates nothing.
 */
public interface LowLatencyKernels {
    /** Prepares a dispatch: begin sends, complete receives. */
    Operation<LowLatencyDispatchResult> prepareDispatch(LowLatencyDispatchPlan plan);

    /** Prepares a combine: begin sends, complete receives and sums. */
    Operation<LowLatencyCombineResult> prepareCombine(LowLatencyCombinePlan plan);

    /** The zero-copy combine input of {@code handle}, BF16 [El, R*maxTokens, H]. */
    Tensor combineBuffer(LowLatencyHandle handle);

    /**
     * Waits until this rank's work is done and all that it sent has arrived; the buffer calls it
     * before the barrier that comes before {@link #reset}.
     */
    void quiet();

    /**
     * Forgets this rank's state in flight; the buffer calls it on every rank between two barriers.
     */
    void reset();

    /**
     * Masks or unmasks a rank. One that was masked because it timed out is out of step: unmask it
     * only with {@link #reset} on all ranks. Ranks that were masked and unmasked by hand and kept
     * making the same calls are in step, and what they did not get or send counts as absent.
     */
    void updateMask(int rank, boolean masked);

    /** 1 for each masked rank; a copy. */
    int[] queryMask();
}
