package io.deepep;

import java.util.Objects;
import java.util.function.BiConsumer;

/**
 * A low-latency dispatch, prepared once and run many times: see {@link Plan}. Results belong to the
 * buffer, which keeps the latest two alive.
 *
 * <p>The inputs must stay unchanged until the dispatch, with a hook its send half, has finished.
 */
public final class LowLatencyDispatchPlan extends Plan {
    private final Tensor x;
    private final Tensor topkIdx;
    private final LowLatencyFormat format;
    private final Tensor topkWeights;
    private final Tensor cumulativeStats;
    private final Tensor waitCostStats;
    private final boolean receiveHook;
    private final int numSms;

    private LowLatencyDispatchPlan(Builder from) {
        x = from.x;
        topkIdx = from.topkIdx;
        format = from.format;
        topkWeights = from.topkWeights;
        cumulativeStats = from.cumulativeStats;
        waitCostStats = from.waitCostStats;
        receiveHook = from.receiveHook;
        numSms = from.numSms;
    }

    /**
     * Starts a plan.
     *
     * @param x BF16 [T,H], rows contiguous; T up to the limit, may differ between ranks and be 0
     * @param topkIdx I64 [T,K] global experts, contiguous, -1 for no selection; an expert named
     *     twice in a row counts as two selections
     */
    public static Builder builder(Tensor x, Tensor topkIdx) {
        return new Builder(x, topkIdx);
    }

    /** BF16 [T,H]. */
    public Tensor x() {
        return x;
    }

    /** I64 [T,K]. */
    public Tensor topkIdx() {
        return topkIdx;
    }

    /** What travels. */
    public LowLatencyFormat format() {
        return format;
    }

    /** F32 [T,K] or null. */
    public Tensor topkWeights() {
        return topkWeights;
    }

    /** I32 [El] or null. */
    public Tensor cumulativeStats() {
        return cumulativeStats;
    }

    /** I64 [R] or null. */
    public Tensor waitCostStats() {
        return waitCostStats;
    }

    /** Whether the receive half waits for the hook. */
    public boolean receiveHook() {
        return receiveHook;
    }

    /** Multiprocessors to use, 0 for the default. */
    public int numSms() {
        return numSms;
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
    public static final class Builder {
        private final Tensor x;
        private final Tensor topkIdx;
        private LowLatencyFormat format = LowLatencyFormat.FP8;
        private Tensor topkWeights;
        private Tensor cumulativeStats;
        private Tensor waitCostStats;
        private boolean receiveHook;
        private int numSms;

        private Builder(Tensor x, Tensor topkIdx) {
            this.x = Objects.requireNonNull(x, "x");
            this.topkIdx = Objects.requireNonNull(topkIdx, "topkIdx");
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

        /** I64 [R], contiguous: the nanoseconds waited for each source rank are added to it. */
        public Builder waitCostStats(Tensor stats) {
            this.waitCostStats = stats;
            return this;
        }

        /**
         * Only sends; the result's hook receives. Between the halves nothing of the device is held.
         */
        public Builder receiveHook(boolean on) {
            this.receiveHook = on;
            return this;
        }

        /**
         * Multiprocessors that the call takes on a GPU. By default all, shared evenly by the ranks
         * of the GPU, which is fastest; the host backend has no use for it.
         */
        public Builder numSms(int number) {
            if (number < 1) {
                throw new IllegalArgumentException("numSms=" + number + " must be at least 1");
            }
            this.numSms = number;
            return this;
        }

        /** The plan. Shapes are checked when a buffer first dispatches it. */
        public LowLatencyDispatchPlan build() {
            return new LowLatencyDispatchPlan(this);
        }
    }
}
