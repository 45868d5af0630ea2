package io.deepep;

import java.util.Objects;
import java.util.function.BiConsumer;

/**
 * A low-latency dispatch, prepared once and run many times. Its results belong to the buffer, and
 * each is valid until the buffer's second low-latency dispatch after it. See {@link Plan}.
 *
 * <p>The inputs must stay unchanged until the dispatch has finished; with a hook, until its send
 * half has.
 */
public final class LowLatencyDispatchPlan extends LowLatencyPlan {
    private final Builder from;

    private LowLatencyDispatchPlan(Builder from) {
        super(from);
        this.from = from;
    }

    /**
     * Starts a plan.
     *
     * @param x BF16 [T,H], rows contiguous; T is 0 to {@link LowLatencyLimits#maxTokens} and may
     *     differ between ranks. H is at most {@link LowLatencyLimits#hidden}, a multiple of 128 (in
     *     format BF16, of 8), and the same on all ranks
     * @param topkIdx I64 [T,K] global expert indices, contiguous, -1 for no selection. An expert
     *     that a token names twice counts as two selections; if a rank selects an expert more than
     *     {@code maxTokens} times, all ranks get a {@code RoutingException}
     */
    public static Builder builder(Tensor x, Tensor topkIdx) {
        return new Builder(x, topkIdx);
    }

    /** The format in which rows travel. */
    public LowLatencyFormat format() {
        return from.format;
    }

    /** The weights that travel with the tokens, F32 [T,K]; or null. */
    public Tensor topkWeights() {
        return from.topkWeights;
    }

    /** The counters of received rows, I32 [El]; or null. */
    public Tensor cumulativeStats() {
        return from.cumulativeStats;
    }

    @Override
    void forEachTensor(BiConsumer<String, Tensor> action) {
        action.accept("x", x());
        action.accept("topkIdx", topkIdx());
        action.accept("topkWeights", topkWeights());
        forEachOutput(action);
    }

    @Override
    void forEachOutput(BiConsumer<String, Tensor> action) {
        action.accept("cumulativeStats", cumulativeStats());
        action.accept("waitCostStats", waitCostStats());
    }

    /** Builds a {@link LowLatencyDispatchPlan}. */
    public static final class Builder extends LowLatencyPlan.Builder<Builder> {
        private LowLatencyFormat format = LowLatencyFormat.FP8;
        private Tensor topkWeights;
        private Tensor cumulativeStats;

        private Builder(Tensor x, Tensor topkIdx) {
            super(x, topkIdx);
        }

        /**
         * The format in which rows travel, {@link LowLatencyFormat#FP8} by default; the same on
         * every rank.
         */
        public Builder format(LowLatencyFormat what) {
            this.format = Objects.requireNonNull(what, "what");
            return this;
        }

        /**
         * Weights that travel with the tokens, for a {@linkplain LowLatencyCombinePlan#preReduced
         * pre-reduced} combine: F32 [T,K], contiguous. None by default; either all ranks give them,
         * or none does.
         */
        public Builder topkWeights(Tensor weights) {
            this.topkWeights = weights;
            return this;
        }

        /**
         * Counters to which each run adds the number of rows that each local expert received: I32
         * [El], contiguous. None by default.
         */
        public Builder cumulativeStats(Tensor stats) {
            this.cumulativeStats = stats;
            return this;
        }

        /** Builds the plan. Shapes are checked when a buffer first dispatches it. */
        public LowLatencyDispatchPlan build() {
            return new LowLatencyDispatchPlan(copy());
        }
    }
}
