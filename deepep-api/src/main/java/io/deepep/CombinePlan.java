package io.deepep;

import java.util.Objects;
import java.util.function.BiConsumer;

/**
 * A normal-mode combine, prepared once and run many times: see {@link Plan}. It sums, in fp32 and
 * unweighted, what the ranks computed for each of this rank's tokens.
 */
public final class CombinePlan extends Plan {
    private final Builder from;

    private CombinePlan(Builder from) {
        super(from);
        this.from = from;
    }

    /**
     * Starts a plan.
     *
     * @param x BF16 [N,H] in the order the dispatch delivered ([M,H] in the expanded layout: a
     *     token's rows are summed on this rank first), rows contiguous. Memory of the buffer
     *     ({@link Buffer#getCombineBuffer}, or the received view itself) is read in place; rows in
     *     other memory are staged. {@link CombineFormat#FP8} casts rows into {@link
     *     Buffer#getCombineBuffer}'s memory, so x must lie elsewhere
     * @param handle the dispatch whose tokens return
     */
    public static Builder builder(Tensor x, DispatchHandle handle) {
        return new Builder(x, handle);
    }

    /** BF16 [N,H]. */
    public Tensor x() {
        return from.x;
    }

    /** The dispatch whose tokens return. */
    public DispatchHandle handle() {
        return from.handle;
    }

    /** F32 [N,K] (expanded: [M]), or null. */
    public Tensor topkWeights() {
        return from.topkWeights;
    }

    /** BF16 [T,H] added once, or null. */
    public Tensor bias0() {
        return from.bias0;
    }

    /** BF16 [T,H] added once, or null. */
    public Tensor bias1() {
        return from.bias1;
    }

    /** BF16 [T,H] to write into, or null. */
    public Tensor out() {
        return from.out;
    }

    /** What travels. */
    public CombineFormat format() {
        return from.format;
    }

    /** The configuration, or null for the buffer's. */
    public Config config() {
        return from.config;
    }

    /** Multiprocessors to use, 0 for those of the configuration. */
    public int numSms() {
        return from.numSms;
    }

    @Override
    void forEachTensor(BiConsumer<String, Tensor> action) {
        action.accept("x", x());
        action.accept("topkWeights", topkWeights());
        action.accept("bias0", bias0());
        action.accept("bias1", bias1());
        forEachOutput(action);
    }

    @Override
    void forEachOutput(BiConsumer<String, Tensor> action) {
        action.accept("out", out());
    }

    /** Builds a {@link CombinePlan}. */
    public static final class Builder extends Plan.Builder<Builder> {
        private final Tensor x;
        private final DispatchHandle handle;
        private Tensor topkWeights;
        private Tensor bias0;
        private Tensor bias1;
        private Tensor out;
        private CombineFormat format = CombineFormat.BF16;
        private Config config;
        private int numSms;

        private Builder(Tensor x, DispatchHandle handle) {
            this.x = Objects.requireNonNull(x, "x");
            this.handle = Objects.requireNonNull(handle, "handle");
        }

        /** Weights to sum alongside, F32 [N,K] as received (expanded: [M]), contiguous. */
        public Builder topkWeights(Tensor weights) {
            this.topkWeights = weights;
            return this;
        }

        /** One bias, BF16 [T,H]. */
        public Builder bias(Tensor bias) {
            this.bias0 = bias;
            this.bias1 = null;
            return this;
        }

        /** Two biases, BF16 [T,H] each. */
        public Builder bias(Tensor first, Tensor second) {
            this.bias0 = Objects.requireNonNull(first, "first");
            this.bias1 = Objects.requireNonNull(second, "second");
            return this;
        }

        /** Memory for the result, BF16 [T,H], rows contiguous. */
        public Builder out(Tensor target) {
            this.out = target;
            return this;
        }

        /**
         * What travels, by default BF16; the same on every rank. FP8 casts all rows, even those of
         * this rank's own tokens, so sums do not depend on where an expert lies. Across nodes it
         * casts the sum of a node's rows again.
         *
         * @throws IllegalArgumentException for {@link CombineFormat#LOGFMT}, which only low-latency
         *     mode has
         */
        public Builder format(CombineFormat what) {
            if (what == CombineFormat.LOGFMT) {
                throw new IllegalArgumentException(
                        "format=LOGFMT travels in low-latency mode alone; use FP8 or BF16");
            }
            this.format = Objects.requireNonNull(what, "what");
            return this;
        }

        /**
         * Multiprocessors that the call uses on a GPU, an even number or, on one node, 1; the same
         * on every rank. By default those of the configuration. On the host, as on GPUs, half of it
         * is the number of RDMA channels.
         */
        public Builder numSms(int number) {
            this.numSms = Config.requireNumSms(number);
            return this;
        }

        /** Overrides the buffer's combine configuration; the same on every rank. */
        public Builder config(Config override) {
            this.config = override;
            return this;
        }

        /** The plan. Shapes are checked when a buffer first combines it. */
        public CombinePlan build() {
            return new CombinePlan(copy());
        }
    }
}
