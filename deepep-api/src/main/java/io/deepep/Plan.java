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
 *       limits, and outputs are allocated. Later runs only check that memory is still there, and
 *       make no garbage.
 *   <li>A plan names memory, not values: each run reads what its input tensors hold then. They must
 *       stay valid and unchanged until the run has finished.
 *   <li>A plan owns the result of its latest run. Running it again overwrites that result. Low
 *       latency: received rows belong to the buffer, see {@link LowLatencyDispatchResult}.
 *   <li>One run is in flight at a time: use one plan per micro-batch. A plan is immutable. On
 *       another buffer it is prepared again, and the first buffer's state is discarded.
 * </ul>
 */
@SuppressWarnings("exports") // the state is for buffers
public abstract sealed class Plan permits DispatchPlan, CombinePlan, LowLatencyPlan {
    private final PlanState state = new PlanState(this::forEachTensor, this::forEachOutput);
    private final Builder<?> from;

    /** A plan as {@code from}, which nobody changes any more, says. */
    Plan(Builder<?> from) {
        this.from = from;
    }

    /** Names what a call reads and writes, as errors name it; what was not given is null. */
    abstract void forEachTensor(BiConsumer<String, Tensor> action);

    /** Names what a call writes, which is part of {@link #forEachTensor}. */
    void forEachOutput(BiConsumer<String, Tensor> action) {
        // Results are the plan's own, or the buffer's.
    }

    /** How long its calls wait for a peer; null for the buffer's time-out. */
    public final Duration timeout() {
        return from.timeout;
    }

    /**
     * How long its calls wait until the others begin them; null for the buffer's start time-out,
     * or, if it has none, {@link #timeout}.
     */
    public final Duration startTimeout() {
        return from.startTimeout;
    }

    /** For the buffer that runs the plan. */
    public final PlanState state() {
        return state;
    }

    /**
     * Builds a plan.
     *
     * @param <B> the builder itself
     */
    public abstract static sealed class Builder<B extends Builder<B>> implements Cloneable
            permits DispatchPlan.Builder, CombinePlan.Builder, LowLatencyPlan.Builder {
        private Duration timeout;
        private Duration startTimeout;

        Builder() {}

        @SuppressWarnings("unchecked") // each kind of builder is its own B
        final B self() {
            return (B) this;
        }

        /** For a plan: what becomes of this builder later does not matter to it. */
        @SuppressWarnings("unchecked")
        final B copy() {
            try {
                return (B) clone();
            } catch (CloneNotSupportedException impossible) {
                throw new AssertionError(impossible);
            }
        }

        /**
         * How long calls of this plan wait for a peer, up to 365 days; by default as long as the
         * buffer's time-out. It limits each wait of a call except those that {@link #startTimeout}
         * limits. Give all ranks the same.
         */
        public B timeout(Duration limit) {
            this.timeout = BufferOptions.requireTimeout("timeout", limit);
            return self();
        }

        /**
         * How long calls of this plan wait until the others begin them, up to 365 days; by default
         * the buffer's {@link Buffer.Builder#startTimeout}, or else {@link #timeout}. Give all
         * ranks the same.
         */
        public B startTimeout(Duration limit) {
            this.startTimeout = BufferOptions.requireTimeout("startTimeout", limit);
            return self();
        }
    }
}
