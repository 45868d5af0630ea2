package io.deepep;

import java.util.Objects;
import java.util.function.BiConsumer;

/**
 * A low-latency combine, prepared once and run many times: see {@link Plan}. It sums, weighted and
 * in fp32, what the experts computed for each of this rank's tokens.
 *
 * <p>By default every expert's row returns as it is, and the token's owner sums them. {@linkplain
 * #preReduced Pre-reduced}, each rank sums its own experts' rows of a token first: fewer bytes, one
 * more rounding.
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
     * @param x BF16 [El, R*maxTokens, H] in the layout of the dispatch, rows contiguous. Memory of
     *     the buffer ({@link Buffer#getLowLatencyCombineBuffer}, or the received view itself) saves
     *     memory of your own
     * @param topkIdx I64 [T,K], the indices that were dispatched
     * @param topkWeights F32 [T,K], contiguous
     * @param handle the dispatch whose tokens return
     */
    public static Builder builder(
            Tensor x, Tensor topkIdx, Tensor topkWeights, LowLatencyHandle handle) {
        return new Builder(x, topkIdx, Objects.requireNonNull(topkWeights, "topkWeights"), handle);
    }

    /**
     * Starts a plan in which each rank sums the rows of a token that its experts have computed,
     * with the weights of {@link LowLatencyDispatchPlan.Builder#topkWeights}, and sends that one
     * sum to the token's owner.
     *
     * <p>A rank sums in fp32 in the order of selections and rounds the sum to BF16, even that of a
     * single row; a {@link CombineFormat} other than BF16 casts the rounded sum. The token's owner
     * adds the ranks' sums in fp32, in the order of each rank's first selection, and rounds again.
     * So a result has one more rounding to BF16 for each rank that holds experts of the token. All
     * ranks pre-reduce a combine, or none does.
     *
     * @param x BF16 [El, R*maxTokens, H] in the layout of the dispatch, rows contiguous
     * @param topkIdx I64 [T,K], exactly the indices that were dispatched: others cause a {@link
     *     io.deepep.error.RoutingException} on all ranks
     * @param handle the dispatch whose tokens return; it must have been given weights
     */
    public static Builder preReduced(Tensor x, Tensor topkIdx, LowLatencyHandle handle) {
        return new Builder(x, topkIdx, null, handle);
    }

    /** F32 [T,K], or null if pre-reduced. */
    public Tensor topkWeights() {
        return from.topkWeights;
    }

    /** Whether ranks sum a token's rows before they send them. */
    public boolean isPreReduced() {
        return from.topkWeights == null;
    }

    /** The dispatch whose tokens return. */
    public LowLatencyHandle handle() {
        return from.handle;
    }

    /** What travels. */
    public CombineFormat format() {
        return from.format;
    }

    /** BF16 [T,H] to write into, or null. */
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

        /** What travels, by default BF16; the same on every rank. */
        public Builder format(CombineFormat what) {
            this.format = Objects.requireNonNull(what, "what");
            return this;
        }

        /** Memory for the result, BF16 [T,H], rows contiguous. */
        public Builder out(Tensor target) {
            this.out = target;
            return this;
        }

        /** The plan. Shapes are checked when a buffer first combines it. */
        public LowLatencyCombinePlan build() {
            return new LowLatencyCombinePlan(copy());
        }
    }
}
