package io.deepep;

import io.deepep.spi.PlanState;
import java.time.Duration;
import java.util.StringJoiner;
import java.util.function.BiConsumer;

/**
 * A call that is prepared once and run many times: its inputs, its options, and the memory of its
 * results. An engine builds a plan for each shape and each place in its model, and passes it to the
 * buffer in every step.
 *
 * <ul>
 *   <li>The first run on a buffer <em>prepares</em> the plan: it checks the plan against the
 *       buffer's limits, and allocates outputs. Later runs only check that the memory is still
 *       valid, and make no garbage.
 *   <li>A plan refers to memory, not to values: each run reads what its input tensors contain at
 *       that time. They must stay valid and unchanged until the run has finished.
 *   <li>A plan owns the result of its latest run, and running it again overwrites that result. The
 *       rows that a low-latency dispatch receives belong to the buffer instead, see {@link
 *       LowLatencyDispatchResult}.
 *   <li>Only one run of a plan may be in flight at a time: use one plan for each micro-batch.
 *   <li>A plan is immutable. If it is run on another buffer, it is prepared again, and what it
 *       prepared for the first buffer is discarded.
 * </ul>
 */
@SuppressWarnings("exports") // the state is for buffers
public abstract sealed class Plan permits DispatchPlan, CombinePlan, LowLatencyPlan {
    private final PlanState state = new PlanState(this::forEachTensor, this::forEachOutput);
    private final Builder<?> from;

    /** Takes its options from {@code from}, which must not change any more. */
    Plan(Builder<?> from) {
        this.from = from;
    }

    /**
     * Visits the tensors that a call reads or writes, by the names that errors use; null if not
     * given.
     */
    abstract void forEachTensor(BiConsumer<String, Tensor> action);

    /** Visits the tensors that a call writes, a subset of {@link #forEachTensor}. */
    void forEachOutput(BiConsumer<String, Tensor> action) {
        // Results are the plan's own, or the buffer's.
    }

    /** How long calls of this plan wait for a peer; null for the buffer's time-out. */
    public final Duration timeout() {
        return from.timeout;
    }

    /**
     * How long calls of this plan wait until the other ranks begin them; null for the buffer's
     * start time-out or, if it has none, {@link #timeout}.
     */
    public final Duration startTimeout() {
        return from.startTimeout;
    }

    /** The kind of plan and its tensors, such as {@code DispatchPlan[x=BF16[16, 256], ...]}. */
    @Override
    public final String toString() {
        StringJoiner text = new StringJoiner(", ", getClass().getSimpleName() + "[", "]");
        forEachTensor(
                (name, tensor) -> {
                    if (tensor != null) {
                        text.add(name + "=" + tensor);
                    }
                });
        return text.toString();
    }

    /** The state that the buffer keeps in the plan; not for engines. */
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

        /** A copy for a plan, which later changes of this builder do not affect. */
        @SuppressWarnings("unchecked")
        final B copy() {
            try {
                return (B) clone();
            } catch (CloneNotSupportedException impossible) {
                throw new AssertionError(impossible);
            }
        }

        /**
         * How long calls of this plan wait for a peer, at most 365 days; by default the buffer's
         * {@link Buffer.Builder#timeout}. The limit applies to each wait of a call, except those
         * that {@link #startTimeout} limits. Give the same on every rank.
         */
        public B timeout(Duration limit) {
            this.timeout = BufferOptions.requireTimeout("timeout", limit);
            return self();
        }

        /**
         * How long calls of this plan wait until the other ranks begin them, at most 365 days; by
         * default the buffer's {@link Buffer.Builder#startTimeout} or, if it has none, {@link
         * #timeout}. Give the same on every rank.
         */
        public B startTimeout(Duration limit) {
            this.startTimeout = BufferOptions.requireTimeout("startTimeout", limit);
            return self();
        }
    }
}
