package io.deepep;

import java.util.Objects;
import java.util.function.BiConsumer;

/**
 * A normal-mode dispatch, prepared once and run many times. Each run overwrites the result of the
 * previous run, including its handle. See {@link Plan}.
 *
 * <p>The routing is given in one of three ways, see {@link Tokens}.
 */
public final class DispatchPlan extends Plan {
    /** The largest {@link Builder#expertAlignment}, more than any GEMM needs. */
    public static final int MAX_EXPERT_ALIGNMENT = 1 << 16;

    private final Builder from;

    private DispatchPlan(Builder from) {
        super(from);
        this.from = from;
    }

    /**
     * Starts a plan for the tokens {@code x}.
     *
     * @param x BF16 [T,H], rows contiguous
     */
    public static Tokens builder(Tensor x) {
        return builder(x, null);
    }

    /**
     * Starts a plan for the tokens {@code x} with scales.
     *
     * @param x FP8_E4M3 or BF16 [T,H], rows contiguous
     * @param scales the scales of FP8 tokens, F32 [T,H/128], any strides; null for BF16
     */
    public static Tokens builder(Tensor x, Tensor scales) {
        return new Tokens(Objects.requireNonNull(x, "x"), scales);
    }

    /** Tokens, BF16 or FP8 [T,H], rows contiguous. */
    public Tensor x() {
        return from.x;
    }

    /** The scales, F32 [T,H/128] with any strides; null for BF16. */
    public Tensor scales() {
        return from.scales;
    }

    /** The selected experts, I64 [T,K]; null if the routing was given in another way. */
    public Tensor topkIdx() {
        return from.topkIdx;
    }

    /** The weights of the selections, F32 [T,K], or null. */
    public Tensor topkWeights() {
        return from.topkWeights;
    }

    /** Number of experts; 0 without top-k. */
    public int numExperts() {
        return from.numExperts;
    }

    /** The layout that gives the routing, or that a top-k routing must match; or null. */
    public DispatchLayout layout() {
        return from.layout;
    }

    /** The handle whose routing is used again, or null. */
    public DispatchHandle handle() {
        return from.handle;
    }

    /** Counts per expert are rounded up to a multiple of this number. */
    public int expertAlignment() {
        return from.expertAlignment;
    }

    /** Rows of the result in worst-case mode; 0 for exact counts. */
    public int numWorstTokens() {
        return from.numWorstTokens;
    }

    /** Whether received rows are grouped by local expert; with a handle, as in its dispatch. */
    public boolean expanded() {
        return handle() != null ? handle().expanded() : Boolean.TRUE.equals(expandedGiven());
    }

    /** What was given to the builder, or null. */
    Boolean expandedGiven() {
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

    /** Multiprocessors to use; 0 for the number in the configuration. */
    public int numSms() {
        return from.numSms;
    }

    /** Where the received rows are. */
    public enum Receive {
        /**
         * In the buffer's memory: the result is a view, and nothing is copied. Valid until the next
         * normal dispatch on the buffer starts, or the buffer is closed.
         */
        VIEW,
        /** In memory of the plan. Valid until the plan is dispatched again. */
        COPY
    }

    @Override
    void forEachTensor(BiConsumer<String, Tensor> action) {
        action.accept("x", x());
        action.accept("scales", scales());
        action.accept("topkIdx", topkIdx());
        action.accept("topkWeights", topkWeights());
        if (layout() != null) {
            action.accept("layout.numTokensPerRank", layout().numTokensPerRank());
            action.accept("layout.numTokensPerExpert", layout().numTokensPerExpert());
            action.accept("layout.isTokenInRank", layout().isTokenInRank());
        }
    }

    /** The tokens of a plan whose routing is still to be given, by one of three methods. */
    public static final class Tokens {
        private final Tensor x;
        private final Tensor scales;

        private Tokens(Tensor x, Tensor scales) {
            this.x = x;
            this.scales = scales;
        }

        /**
         * Routes tokens by the experts that they select.
         *
         * @param idx I64 [T,K] global expert indices, contiguous, -1 for no selection; an expert
         *     that a token names twice counts as two selections
         * @param weights F32 [T,K], contiguous; or null
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
         * Routes tokens by a layout from {@link Buffer#getDispatchLayout}: its {@code
         * isTokenInRank} says which rank receives which token. Ranks receive no indices or weights.
         */
        public Builder layout(DispatchLayout layout) {
            Builder b = new Builder(x, scales);
            b.layout = Objects.requireNonNull(layout, "layout");
            return b;
        }

        /**
         * Routes tokens as an earlier dispatch did, in the same order of rows, and {@linkplain
         * Builder#expanded expanded} if that was. The shape of {@code x} must be that of the
         * earlier dispatch; no indices, weights or counts are exchanged.
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
        private Boolean expanded;
        private Receive receive = Receive.VIEW;
        private Config config;
        private int numSms;

        private Builder(Tensor x, Tensor scales) {
            this.x = x;
            this.scales = scales;
        }

        /**
         * Compares a routing by experts with the layout that was computed from it; not compared by
         * default. If the two differ on any rank, all ranks throw a {@code RoutingException}.
         */
        public Builder expectLayout(DispatchLayout expected) {
            this.layout = Objects.requireNonNull(expected, "expected");
            return this;
        }

        /**
         * Rounds the counts per expert up to a multiple of {@code alignment}, 1 (the default) to
         * {@value #MAX_EXPERT_ALIGNMENT}. With {@link #expanded}, each expert's rows are padded to
         * it with zeros. Needs routing by {@linkplain Tokens#topk experts}. A {@linkplain
         * Tokens#cached cached} dispatch uses the alignment of its handle's dispatch: leave it out
         * there, or give the same.
         */
        public Builder expertAlignment(int alignment) {
            this.expertAlignment = alignment;
            return this;
        }

        /**
         * Gives the result {@code rows} rows, however many arrive, so that the call does not wait
         * for counts (worst-case mode). The rows after the received ones have top-k indices -1 and
         * undefined data. With {@link #expanded}, {@code rows} is the number of expanded rows. 0,
         * the default, gives the result exactly the rows that arrive.
         */
        public Builder numWorstTokens(int rows) {
            this.numWorstTokens = rows;
            return this;
        }

        /**
         * Groups received rows by local expert, for grouped GEMMs: a token appears once for each
         * local expert that it selects. Off by default; needs routing by {@linkplain Tokens#topk
         * experts}. A {@linkplain Tokens#cached cached} dispatch uses the layout of its handle's
         * dispatch: leave it out there, or give the same.
         */
        public Builder expanded(boolean on) {
            this.expanded = on;
            return this;
        }

        /** Chooses where the received rows are; {@link Receive#VIEW} by default. */
        public Builder receive(Receive how) {
            this.receive = Objects.requireNonNull(how, "how");
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
         * Overrides the buffer's dispatch configuration; the same on every rank. Neither its number
         * of multiprocessors nor its {@code rdmaRecvChunk} may exceed the larger number in the
         * buffer's two configurations, for which the buffer is laid out.
         */
        public Builder config(Config override) {
            this.config = override;
            return this;
        }

        /**
         * Builds the plan. The buffer that first dispatches it checks it against its limits and its
         * group.
         *
         * @throws IllegalArgumentException if types, shapes, strides or devices do not match, or an
         *     option does not go with the routing
         */
        public DispatchPlan build() {
            DispatchPlan plan = new DispatchPlan(copy());
            new DispatchChecks(plan).check();
            return plan;
        }
    }
}
