package io.deepep;

import java.util.Objects;
import java.util.function.BiConsumer;

/**
 * A low-latency combine, prepared once and run many times. For each of this rank's tokens it sums
 * the rows that the experts computed, weighted and in fp32. See {@link Plan}.
 *
 * <p>By default, every expert's row is sent back, and the token's rank sums them. In a {@linkplain
 * #preReduced pre-reduced} combine, each rank first sums the rows of a token that its own experts
 * computed: this sends fewer bytes, but rounds once more.
 *
 * <p>The inputs must stay unchanged until the combine has finished; with a hook, {@code x} until
 * its send half has, and the indices and weights until the hook's half has.
 */
public final class LowLatencyCombinePlan extends LowLatencyPlan {
    private final Builder from;

    private LowLatencyCombinePlan(Builder from) {
        super(from);
        this.from = from;
    }

    /**
     * Starts a plan.
     *
     * @param x BF16 [El, R*maxTokens, H] in the layout of the dispatch, rows contiguous. H is at
     *     most {@link LowLatencyLimits#hidden}, a multiple of 128 (in format BF16, of 8), and the
     *     same on all ranks; it need not be that of the dispatched rows. Any memory of the device
     *     will do; that of {@link Buffer#getLowLatencyCombineBuffer}, or the received view itself,
     *     needs no memory besides the buffer
     * @param topkIdx I64 [T,K], the indices that were dispatched
     * @param topkWeights F32 [T,K], contiguous
     * @param handle the handle of the dispatch whose tokens are combined
     */
    public static Builder builder(
            Tensor x, Tensor topkIdx, Tensor topkWeights, LowLatencyHandle handle) {
        return new Builder(x, topkIdx, Objects.requireNonNull(topkWeights, "topkWeights"), handle);
    }

    /**
     * Starts a plan of a pre-reduced combine: each rank sums the rows of a token that its experts
     * computed, with the weights of {@link LowLatencyDispatchPlan.Builder#topkWeights}, and sends
     * only that sum to the token's rank.
     *
     * <p>A rank sums in fp32 in the order of selections and rounds the sum to BF16, even that of a
     * single row; a {@link CombineFormat} other than BF16 casts the rounded sum. The token's rank
     * adds the ranks' sums in fp32, in the order of each rank's first selection, and rounds again.
     * A result is therefore rounded to BF16 once more for each rank that holds experts of the
     * token. Either all ranks pre-reduce a combine, or none does.
     *
     * @param x BF16 [El, R*maxTokens, H] as in {@link #builder}
     * @param topkIdx I64 [T,K], exactly the indices that were dispatched; others cause a {@link
     *     io.deepep.error.RoutingException} on all ranks
     * @param handle the handle of the dispatch whose tokens are combined; it must have been given
     *     weights
     */
    public static Builder preReduced(Tensor x, Tensor topkIdx, LowLatencyHandle handle) {
        return new Builder(x, topkIdx, null, handle);
    }

    /** The weights of the selections, F32 [T,K]; null if pre-reduced. */
    public Tensor topkWeights() {
        return from.topkWeights;
    }

    /** Whether each rank sums the rows of a token before it sends them. */
    public boolean isPreReduced() {
        return from.topkWeights == null;
    }

    /** The handle of the dispatch whose tokens are combined. */
    public LowLatencyHandle handle() {
        return from.handle;
    }

    /** The format in which rows travel. */
    public CombineFormat format() {
        return from.format;
    }

    /** The memory for the result, BF16 [T,H]; or null for memory of the plan. */
    public Tensor out() {
        return from.out;
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
        action.accept("out", out());
        action.accept("waitCostStats", waitCostStats());
    }

    /** Builds a {@link LowLatencyCombinePlan}. */
    public static final class Builder extends LowLatencyPlan.Builder<Builder> {
        private final Tensor topkWeights;
        private final LowLatencyHandle handle;
        private CombineFormat format = CombineFormat.BF16;
        private Tensor out;

        private Builder(Tensor x, Tensor topkIdx, Tensor topkWeights, LowLatencyHandle handle) {
            super(x, topkIdx);
            this.topkWeights = topkWeights;
            this.handle = Objects.requireNonNull(handle, "handle");
        }

        /** The format in which rows travel, BF16 by default; the same on every rank. */
        public Builder format(CombineFormat what) {
            this.format = Objects.requireNonNull(what, "what");
            return this;
        }

        /** Memory for the result, BF16 [T,H], rows contiguous; by default the plan allocates it. */
        public Builder out(Tensor target) {
            this.out = target;
            return this;
        }

        /** Builds the plan. Shapes are checked when a buffer first combines it. */
        public LowLatencyCombinePlan build() {
            return new LowLatencyCombinePlan(copy());
        }
    }
}
