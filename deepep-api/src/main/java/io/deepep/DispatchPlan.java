package io.deepep;

import java.util.Objects;
import java.util.function.BiConsumer;

/**
 * A normal-mode dispatch, prepared once and run many times: see {@link Plan}. Each run overwrites
 * the result of the run before, and its handle.
 *
 * <p>{@link Tokens} names the routing in one of three ways.
 */
public final class DispatchPlan extends Plan {
    /** The largest alignment, more than any GEMM needs; every expert's padding takes memory. */
    public static final int MAX_EXPERT_ALIGNMENT = 1 << 16;

    private final Builder from;

    private DispatchPlan(Builder from) {
        super(from);
        this.from = from;
    }

    /** Starts a plan for the tokens {@code x}, BF16 [T,H], rows contiguous. */
    public static Tokens builder(Tensor x) {
        return builder(x, null);
    }

    /**
     * Starts a plan for the tokens {@code x}.
     *
     * @param x FP8 [T,H], rows contiguous; or BF16
     * @param scales of FP8 tokens, F32 [T,H/128], any strides; null for BF16
     */
    public static Tokens builder(Tensor x, Tensor scales) {
        return new Tokens(Objects.requireNonNull(x, "x"), scales);
    }

    /** Tokens, BF16 or FP8 [T,H], rows contiguous. */
    public Tensor x() {
        return from.x;
    }

    /** F32 [T,H/128] with any strides, or null for BF16. */
    public Tensor scales() {
        return from.scales;
    }

    /** I64 [T,K], or null. */
    public Tensor topkIdx() {
        return from.topkIdx;
    }

    /** F32 [T,K], or null. */
    public Tensor topkWeights() {
        return from.topkWeights;
    }

    /** Number of experts; 0 without top-k. */
    public int numExperts() {
        return from.numExperts;
    }

    /** The layout that is the routing, or that the top-k routing must match; or null. */
    public DispatchLayout layout() {
        return from.layout;
    }

    /** The handle of the reused routing, or null. */
    public DispatchHandle handle() {
        return from.handle;
    }

    /** Counts per expert are rounded up to a multiple of this. */
    public int expertAlignment() {
        return from.expertAlignment;
    }

    /** Rows of the result if its size must not depend on the routing; 0 for exact counts. */
    public int numWorstTokens() {
        return from.numWorstTokens;
    }

    /** Whether rows are grouped by local expert. */
    public boolean expanded() {
        return from.expanded;
    }

    /** Whether the result is a view of the buffer or a copy. */
    public Receive receive() {
        return from.receive;
    }

    /** The configuration, or null for the buffer's. */
    public Config config() {
        return from.config;
    }

    /** Multiprocessors to use, 0 for those of the configuration. */
    public int numSms() {
        return from.numSms;
    }

    /** Where received rows are. */
    public enum Receive {
        /**
         * A view of the buffer's symmetric memory: nothing is copied. Valid until the next normal
         * dispatch on the buffer starts.
         */
        VIEW,
        /** The result's own memory, valid until the same plan is dispatched again. */
        COPY
    }

    @Override
    void forEachTensor(BiConsumer<String, Tensor> action) {
        action.accept("x", x());
        action.accept("scales", scales());
        action.accept("topkIdx", topkIdx());
        action.accept("topkWeights", topkWeights());
        if (layout() != null) {
            action.accept("numTokensPerRank", layout().numTokensPerRank());
            action.accept("numTokensPerExpert", layout().numTokensPerExpert());
            action.accept("isTokenInRank", layout().isTokenInRank());
        }
    }

    /** Tokens that still need a routing: name it in one of three ways. */
    public static final class Tokens {
        private final Tensor x;
        private final Tensor scales;

        private Tokens(Tensor x, Tensor scales) {
            this.x = x;
            this.scales = scales;
        }

        /**
         * Routing by experts.
         *
         * @param idx I64 [T,K] global expert indices, contiguous, -1 for no selection; an expert
         *     that a token names twice counts as two selections
         * @param weights F32 [T,K], contiguous, or null
         * @param experts number of experts of all ranks, a multiple of the number of ranks; the
         *     same on every rank
         */
        public Builder topk(Tensor idx, Tensor weights, int experts) {
            Builder b = new Builder(x, scales);
            b.topkIdx = Objects.requireNonNull(idx, "idx");
            b.topkWeights = weights;
            b.numExperts = experts;
            return b;
        }

        /**
         * Routing by a layout from {@link Buffer#getDispatchLayout}: its {@code isTokenInRank}
         * decides which rank receives which token. Ranks receive no indices or weights.
         */
        public Builder layout(DispatchLayout layout) {
            Builder b = new Builder(x, scales);
            b.layout = Objects.requireNonNull(layout, "layout");
            return b;
        }

        /**
         * The routing and row order of an earlier dispatch with the same number of tokens: no
         * indices, weights or counts are exchanged.
         */
        public Builder cached(DispatchHandle handle) {
            Builder b = new Builder(x, scales);
            b.handle = Objects.requireNonNull(handle, "handle");
            return b;
        }
    }

    /** Builds a {@link DispatchPlan}. */
    public static final class Builder extends Plan.Builder<Builder> {
        private final Tensor x;
        private final Tensor scales;
        private Tensor topkIdx;
        private Tensor topkWeights;
        private int numExperts;
        private DispatchLayout layout;
        private DispatchHandle handle;
        private int expertAlignment = 1;
        private int numWorstTokens;
        private boolean expanded;
        private Receive receive = Receive.VIEW;
        private Config config;
        private int numSms;

        private Builder(Tensor x, Tensor scales) {
            this.x = x;
            this.scales = scales;
        }

        /**
         * Compares a routing by experts with the layout that was computed from it. If the two
         * differ on any rank, all ranks throw a {@code RoutingException}.
         */
        public Builder expectLayout(DispatchLayout expected) {
            this.layout = Objects.requireNonNull(expected, "expected");
            return this;
        }

        /**
         * Rounds the counts per expert up to a multiple of {@code alignment}; with {@link
         * #expanded} each expert's rows are padded to it with zeros.
         */
        public Builder expertAlignment(int alignment) {
            this.expertAlignment = alignment;
            return this;
        }

        /**
         * Gives the result {@code rows} rows whatever arrives, so the call does not wait for
         * counts. Rows past the received ones have top-k indices -1 and undefined data. With {@link
         * #expanded}, {@code rows} counts expanded rows.
         */
        public Builder numWorstTokens(int rows) {
            this.numWorstTokens = rows;
            return this;
        }

        /**
         * Groups received rows by local expert for grouped GEMMs: a token appears once per selected
         * local expert. Needs routing by {@linkplain Tokens#topk experts}.
         */
        public Builder expanded(boolean on) {
            this.expanded = on;
            return this;
        }

        /** Whether the result is a view (default) or a copy. */
        public Builder receive(Receive how) {
            this.receive = Objects.requireNonNull(how, "how");
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

        /** Overrides the buffer's dispatch configuration; the same on every rank. */
        public Builder config(Config override) {
            this.config = override;
            return this;
        }

        /**
         * The plan. The buffer that first dispatches it checks it against its limits and ranks.
         *
         * @throws IllegalArgumentException if types, shapes, strides or devices do not match, or an
         *     option cannot be used with the routing
         */
        public DispatchPlan build() {
            DispatchPlan plan = new DispatchPlan(copy());
            new DispatchChecks(plan).check();
            return plan;
        }
    }
}
