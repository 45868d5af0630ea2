package io.deepep;

import java.util.Objects;
import java.util.function.BiConsumer;

/**
 * A low-latency dispatch, prepared once and run many times: see {@link Plan}. Results belong to the
 * buffer, which keeps the latest two alive.
 *
 * <p>The inputs must stay unchanged until the dispatch has finished (with a hook, its send half).
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
     * @param x BF16 [T,H], rows contiguous; T up to the limit, may differ between ranks and be 0
     * @param topkIdx I64 [T,K] global experts, contiguous, -1 for no selection; an expert that a
     *     token names twice counts as two selections, and may have as many as a rank tokens: if it
     *     has more, all ranks get a {@code RoutingException}
     */
    public static Builder builder(Tensor x, Tensor topkIdx) {
        return new Builder(x, topkIdx);
    }

    /** What travels. */
    public LowLatencyFormat format() {
        return from.format;
    }

    /** F32 [T,K] or null. */
    public Tensor topkWeights() {
        return from.topkWeights;
    }

    /** I32 [El] or null. */
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

        /** What travels; {@link LowLatencyFormat#FP8} by default. */
        public Builder format(LowLatencyFormat what) {
            this.format = Objects.requireNonNull(what, "what");
            return this;
        }

        /**
         * F32 [T,K], contiguous: weights that travel with the tokens, for a {@linkplain
         * LowLatencyCombinePlan#preReduced pre-reduced} combine. None by default; all ranks give
         * them, or none does.
         */
        public Builder topkWeights(Tensor weights) {
            this.topkWeights = weights;
            return this;
        }

        /** I32 [El], contiguous: the received count of each local expert is added to it. */
        public Builder cumulativeStats(Tensor stats) {
            this.cumulativeStats = stats;
            return this;
        }

        /** The plan. Shapes are checked when a buffer first dispatches it. */
        public LowLatencyDispatchPlan build() {
            return new LowLatencyDispatchPlan(copy());
        }
    }
}
