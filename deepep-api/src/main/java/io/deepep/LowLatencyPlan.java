package io.deepep;

import java.util.Objects;

/** The common part of low-latency dispatch and combine plans. See {@link Plan}. */
public abstract sealed class LowLatencyPlan extends Plan
        permits LowLatencyDispatchPlan, LowLatencyCombinePlan {
    /** What is fastest on H200 up to a number of selections; above, each has a multiprocessor. */
    private static final int FEW_SELECTIONS = 32;

    private static final int SMS_FOR_FEW = 48;
    private static final int SOME_SELECTIONS = 128;
    private static final int SMS_FOR_SOME = 80;

    private final Builder<?> from;

    LowLatencyPlan(Builder<?> from) {
        super(from);
        this.from = from;
    }

    /** The rows to send: BF16 [T,H] to dispatch, BF16 [El, R*maxTokens, H] to combine. */
    public final Tensor x() {
        return from.x;
    }

    /** H: elements of a row; dispatched and combined rows may have different ones. */
    public final int hidden() {
        return (int) x().size(x().rank() - 1);
    }

    /** The selected experts, I64 [T,K]. */
    public final Tensor topkIdx() {
        return from.topkIdx;
    }

    /** The counters of waiting times, I64 [R]; or null. */
    public final Tensor waitCostStats() {
        return from.waitCostStats;
    }

    /** Whether the result has a hook that runs the receive half. */
    public final boolean receiveHook() {
        return from.receiveHook;
    }

    /** Multiprocessors to use; 0 for the default. */
    public final int numSms() {
        return from.numSms;
    }

    /**
     * The multiprocessors that a call on one node of at most 8 GPU ranks uses by default: 48 for up
     * to 32 selections, 80 for up to 128, one for each selection above that, and at most the rank's
     * share of its GPU. More multiprocessors only add synchronization, because all must start and
     * report. This costs 5 % of a call of 4 tokens on an H200.
     *
     * @param numSelections selections of this rank's tokens, T * K; other ranks may have more
     * @param share multiprocessors that the rank has to itself
     */
    public static int defaultNumSms(long numSelections, int share) {
        long best = numSelections;
        if (numSelections <= FEW_SELECTIONS) {
            best = SMS_FOR_FEW;
        } else if (numSelections <= SOME_SELECTIONS) {
            best = SMS_FOR_SOME;
        }
        return (int) Math.min(share, best);
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

        /**
         * Counters to which each run adds the nanoseconds that it waited for each rank: I64 [R],
         * contiguous. None by default.
         */
        public B waitCostStats(Tensor stats) {
            this.waitCostStats = stats;
            return self();
        }

        /**
         * Makes the call only send; the result's hook then receives (and in a combine, sums). The
         * call occupies no multiprocessors between the two halves. Off by default.
         */
        public B receiveHook(boolean on) {
            this.receiveHook = on;
            return self();
        }

        /**
         * Multiprocessors that the call uses on a GPU, at least 1; the host backend ignores it. By
         * default what is fastest: on one node of at most 8 ranks see {@link
         * LowLatencyPlan#defaultNumSms}, in other groups all, shared evenly by the ranks on the
         * GPU.
         */
        public B numSms(int number) {
            this.numSms = Numbers.requirePositive("numSms", number);
            return self();
        }
    }
}
