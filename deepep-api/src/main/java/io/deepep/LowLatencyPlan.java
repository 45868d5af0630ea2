package io.deepep;

import java.util.Objects;

/** What low-latency dispatch and combine plans have in common: see {@link Plan}. */
public abstract sealed class LowLatencyPlan extends Plan
        permits LowLatencyDispatchPlan, LowLatencyCombinePlan {
    private final Builder<?> from;

    LowLatencyPlan(Builder<?> from) {
        super(from);
        this.from = from;
    }

    /** The rows to send: BF16 [T,H] to dispatch, BF16 [El, R*maxTokens, H] to combine. */
    public final Tensor x() {
        return from.x;
    }

    /** I64 [T,K]. */
    public final Tensor topkIdx() {
        return from.topkIdx;
    }

    /** I64 [R] or null. */
    public final Tensor waitCostStats() {
        return from.waitCostStats;
    }

    /** Whether the receive half runs only with the hook. */
    public final boolean receiveHook() {
        return from.receiveHook;
    }

    /** Multiprocessors to use, 0 for the default. */
    public final int numSms() {
        return from.numSms;
    }

    /**
     * Builds a low-latency plan.
     *
     * @param <B> the builder itself
     */
    public abstract static sealed class Builder<B extends Builder<B>> extends Plan.Builder<B>
            permits LowLatencyDispatchPlan.Builder, LowLatencyCombinePlan.Builder {
        private final Tensor x;
        private final Tensor topkIdx;
        private Tensor waitCostStats;
        private boolean receiveHook;
        private int numSms;

        Builder(Tensor x, Tensor topkIdx) {
            this.x = Objects.requireNonNull(x, "x");
            this.topkIdx = Objects.requireNonNull(topkIdx, "topkIdx");
        }

        /** I64 [R], contiguous: the nanoseconds waited for each rank are added to it. */
        public B waitCostStats(Tensor stats) {
            this.waitCostStats = stats;
            return self();
        }

        /**
         * Makes the call only send; the result's hook receives, and that of a combine also sums.
         * The device is not used between the halves.
         */
        public B receiveHook(boolean on) {
            this.receiveHook = on;
            return self();
        }

        /**
         * Multiprocessors that the call uses on a GPU. By default all, shared evenly by the ranks
         * of the GPU, which is fastest; the host backend ignores it.
         */
        public B numSms(int number) {
            if (number < 1) {
                throw new IllegalArgumentException("numSms=" + number + " must be at least 1");
            }
            this.numSms = number;
            return self();
        }
    }
}
