package io.deepep;

import io.deepep.spi.PlanState;
import java.time.Duration;
import java.util.function.BiConsumer;

/**
 * A call that is prepared once and run many times: its inputs, its options, and the memory of its
 * results. An engine builds one for each shape and place in its model, and gives it to the buffer
 * at every step.
 *
 * <ul>
 *   <li>The first run on a buffer <em>prepares</em> the plan: it is checked against the buffer's
 *       limits, and outputs are allocated. Later runs check nothing again but that memory is still
 *       there, and make no garbage.
 *   <li>A plan names memory, not values: each run reads what its input tensors hold then. They must
 *       stay valid and unchanged until the run has finished.
 *   <li>A plan owns the result of its latest run. Running it again overwrites that result. Low
 *       latency: received rows belong to the buffer, see {@link LowLatencyDispatchResult}.
 *   <li>One run is in flight at a time: use one plan per micro-batch. What a plan is asked for
 *       never changes. On another buffer it is prepared again, and the first buffer's state is
 *       forgotten.
 * </ul>
 */
@SuppressWarnings("exports") // the state is for buffers
public abstract sealed class Plan permits DispatchPlan, CombinePlan, LowLatencyPlan {
    private final PlanState state = new PlanState(this::forEachTensor, this::forEachOutput);
    private final Duration timeout;

    Plan(Duration timeout) {
        this.timeout = timeout;
    }

    /** Names what a call reads and writes, as errors name it; what was not given is null. */
    abstract void forEachTensor(BiConsumer<String, Tensor> action);

    /** Names what a call writes, which is part of {@link #forEachTensor}. */
    void forEachOutput(BiConsumer<String, Tensor> action) {
        // Results are the plan's own, or the buffer's.
    }

    /** How long its calls wait for a peer; null for the buffer's time-out. */
    public final Duration timeout() {
        return timeout;
    }

    /** For the buffer that runs the plan. */
    public final PlanState state() {
        return state;
    }
}
