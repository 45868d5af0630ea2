package io.deepep;

import java.util.Objects;
import java.util.function.BiConsumer;

/**
 * A normal-mode combine, prepared once and run many times. For each of this rank's tokens it sums
 * the rows that the ranks computed, in fp32 and without weights. See {@link Plan}.
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
     * @param x BF16, or FP8_E4M3 with {@linkplain Builder#scales scales}: [N,H] in the order in
     *     which the dispatch delivered the rows, with any H up to {@link NormalLimits#hidden}, the
     *     same on all ranks (BF16 [M,H] in the expanded layout: this rank first sums the rows of
     *     each token), rows contiguous. Rows in the buffer's memory ({@link
     *     Buffer#getCombineBuffer}, {@link Buffer#getFp8CombineBuffer}, or the received view
     *     itself) are read in place; rows in other memory are copied first. {@link
     *     CombineFormat#FP8} casts BF16 rows into the memory of {@link Buffer#getCombineBuffer}, so
     *     these must be elsewhere
     * @param handle the handle of the dispatch whose tokens are combined
     */
    public static Builder builder(Tensor x, DispatchHandle handle) {
        return new Builder(x, handle);
    }

    /** The rows to combine, BF16 or FP8 [N,H] (expanded: BF16 [M,H]). */
    public Tensor x() {
        return from.x;
    }

    /** H: elements of a row; it need not be that of the dispatched rows. */
    public int hidden() {
        return (int) x().size(1);
    }

    /** The scales of FP8 rows, F32 [N,H/128] with any strides; null for BF16. */
    public Tensor scales() {
        return from.scales;
    }

    /** The handle of the dispatch whose tokens are combined. */
    public DispatchHandle handle() {
        return from.handle;
    }

    /** The weights to sum alongside, F32 [N,K] (expanded: [M]); or null. */
    public Tensor topkWeights() {
        return from.topkWeights;
    }

    /** The first bias, BF16 [T,H], added once to each token's sum; or null. */
    public Tensor bias0() {
        return from.bias0;
    }

    /** The second bias, BF16 [T,H]; or null. */
    public Tensor bias1() {
        return from.bias1;
    }

    /** The memory for the result, BF16 [T,H]; or null for memory of the plan. */
    public Tensor out() {
        return from.out;
    }

    /** The format in which rows travel; FP8 if they were given as FP8. */
    public CombineFormat format() {
        CombineFormat given = scales() == null ? CombineFormat.BF16 : CombineFormat.FP8;
        return from.format == null ? given : from.format;
    }

    /** The configuration, or null for the buffer's. */
    public Config config() {
        return from.config;
    }

    /** Multiprocessors to use; 0 for the number in the configuration. */
    public int numSms() {
        return from.numSms;
    }

    /** What does not depend on a buffer. */
    private void requireConsistentRows() {
        ScaledRows.requirePair(x(), scales(), "[N,H/128]");
        if (scales() == null) {
            return;
        }
        if (format() != CombineFormat.FP8) {
            throw new IllegalArgumentException(
                    "format=%s but x is FP8_E4M3 with scales; leave the format out, or give BF16 rows"
                            .formatted(format()));
        }
        if (handle().expanded()) {
            throw new IllegalArgumentException(
                    "x is FP8_E4M3 but the handle is expanded, so the rows of a token are summed before they"
                            + " travel; give BF16 rows: format=FP8 casts their sums");
        }
    }

    @Override
    void forEachTensor(BiConsumer<String, Tensor> action) {
        action.accept("x", x());
        action.accept("scales", scales());
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
        private Tensor scales;
        private Tensor topkWeights;
        private Tensor bias0;
        private Tensor bias1;
        private Tensor out;
        private CombineFormat format;
        private Config config;
        private int numSms;

        private Builder(Tensor x, DispatchHandle handle) {
            this.x = Objects.requireNonNull(x, "x");
            this.handle = Objects.requireNonNull(handle, "handle");
        }

        /**
         * Scales of rows that are FP8 already, F32 [N,H/128], any strides; none by default, for
         * BF16 rows. The rows then travel in {@link CombineFormat#FP8} as they are: no launch casts
         * them. A channel counts as its code times its scale, in fp32, whatever the scales are.
         * Rows in the tensors of {@link Buffer#getFp8CombineBuffer}, and received FP8 rows, are
         * read in place; others are copied into the memory of these tensors first, so they must be
         * elsewhere. Some ranks may give FP8 rows and others BF16, if all combine in that format.
         */
        public Builder scales(Tensor given) {
            this.scales = given;
            return this;
        }

        /**
         * Weights to sum alongside, F32 [N,K] as received (expanded: [M]), contiguous; none by
         * default. All K of a row are summed: store 0 where {@link DispatchResult#recvTopkIdx} is
         * -1.
         */
        public Builder topkWeights(Tensor weights) {
            this.topkWeights = weights;
            return this;
        }

        /** Adds a bias to the sums, BF16 [T,H]; replaces earlier biases. */
        public Builder bias(Tensor bias) {
            this.bias0 = bias;
            this.bias1 = null;
            return this;
        }

        /** Adds two biases to the sums, BF16 [T,H] each; replaces earlier biases. */
        public Builder bias(Tensor first, Tensor second) {
            this.bias0 = Objects.requireNonNull(first, "first");
            this.bias1 = Objects.requireNonNull(second, "second");
            return this;
        }

        /** Memory for the result, BF16 [T,H], rows contiguous; by default the plan allocates it. */
        public Builder out(Tensor target) {
            this.out = target;
            return this;
        }

        /**
         * The format in which rows travel, the same on every rank; by default {@link
         * CombineFormat#BF16}, or FP8 if there are {@link #scales}. FP8 casts all BF16 rows, even
         * those that stay on their rank, so that sums do not depend on which rank holds an expert.
         * Across nodes, the sum of a node's rows is cast again.
         *
         * @throws IllegalArgumentException for {@link CombineFormat#LOGFMT}, which only low-latency
         *     mode has
         */
        public Builder format(CombineFormat what) {
            if (what == CombineFormat.LOGFMT) {
                throw new IllegalArgumentException(
                        "format=LOGFMT is for low-latency mode only; use FP8 or BF16");
            }
            this.format = Objects.requireNonNull(what, "what");
            return this;
        }

        /**
         * Multiprocessors that the call uses on a GPU: an even number or, on one node, 1; the same
         * on every rank, and no more than {@link #config} may have. By default the number in the
         * configuration. Half of it is the number of RDMA channels, on the host too.
         */
        public Builder numSms(int number) {
            this.numSms = Config.requireNumSms(number);
            return this;
        }

        /**
         * Overrides the buffer's combine configuration; the same on every rank. Neither its number
         * of multiprocessors nor its {@code rdmaRecvChunk} may exceed the larger number in the
         * buffer's two configurations, for which the buffer is laid out.
         */
        public Builder config(Config override) {
            this.config = override;
            return this;
        }

        /**
         * Builds the plan. Shapes are checked when a buffer first combines it.
         *
         * @throws IllegalArgumentException if FP8 rows are given without scales or scales without
         *     FP8 rows, or if FP8 rows contradict the format or the layout of the handle
         */
        public CombinePlan build() {
            CombinePlan plan = new CombinePlan(copy());
            plan.requireConsistentRows();
            return plan;
        }
    }
}
