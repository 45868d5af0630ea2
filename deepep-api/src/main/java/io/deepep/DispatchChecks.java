package io.deepep;

import io.deepep.spi.RowFormat;
import io.deepep.spi.TensorChecks;

/** Checks a {@link DispatchPlan} as far as this does not depend on a buffer. */
final class DispatchChecks {
    private final DispatchPlan plan;
    private final TensorChecks tensors;
    private final long numTokens;
    private final long hidden;

    DispatchChecks(DispatchPlan plan) {
        this.plan = plan;
        this.tensors = new TensorChecks(plan.x().device(), "x is on");
        DType dtype = plan.x().dtype();
        if (dtype != DType.BF16 && dtype != DType.FP8_E4M3) {
            throw new IllegalArgumentException(
                    "x is " + plan.x() + "; it must be BF16, or FP8_E4M3 with scales");
        }
        tensors.requireForm("x", plan.x(), dtype, TensorChecks.ANY, TensorChecks.ANY);
        this.numTokens = plan.x().size(0);
        this.hidden = plan.x().size(1);
    }

    void check() {
        tokens();
        if (plan.topkIdx() != null) {
            topk();
        } else {
            withoutTopk();
        }
        if (plan.handle() != null) {
            cached(plan.handle());
        }
        if (plan.layout() != null) {
            layout(plan.layout());
        }
        options();
    }

    private void tokens() {
        Tensor x = plan.x();
        boolean fp8 = x.dtype() == DType.FP8_E4M3;
        RowFormat.requireHidden(x.dtype(), hidden);
        tensors.requireContiguousRows("x", x);
        ScaledRows.requirePair(x, plan.scales(), "[T,H/128]");
        if (fp8) {
            long groups = hidden / Fp8E4m3.CHANNELS_PER_SCALE;
            tensors.requireForm("scales", plan.scales(), DType.F32, numTokens, groups);
        }
    }

    private void topk() {
        Tensor idx = plan.topkIdx();
        tensors.requireForm("topkIdx", idx, DType.I64, numTokens, TensorChecks.ANY);
        tensors.requireContiguous("topkIdx", idx);
        if (plan.topkWeights() != null) {
            tensors.requireForm(
                    "topkWeights", plan.topkWeights(), DType.F32, numTokens, idx.size(1));
            tensors.requireContiguous("topkWeights", plan.topkWeights());
        }
        Numbers.requirePositive("numExperts", plan.numExperts());
    }

    private void withoutTopk() {
        if (plan.handle() == null && plan.expanded()) {
            throw new IllegalArgumentException(
                    "expanded rows are grouped by expert, but the routing names none; give"
                            + " topk(...)");
        }
        if (plan.handle() == null && plan.expertAlignment() > 1) {
            throw new IllegalArgumentException(
                    "expertAlignment=%s aligns the rows of experts, but the routing names none; give topk(...)"
                            .formatted(plan.expertAlignment()));
        }
        if (plan.handle() != null && plan.layout() != null) {
            throw new IllegalArgumentException(
                    "expectLayout needs topk(...); the routing of a handle was compared when it was"
                            + " made");
        }
    }

    private void cached(DispatchHandle handle) {
        if (numTokens != handle.numTokens() || hidden != handle.hidden()) {
            throw new IllegalArgumentException(
                    "x is %s but the handle is of a dispatch of [%s, %s]; use a handle of the same shape"
                            .formatted(plan.x(), handle.numTokens(), handle.hidden()));
        }
        Boolean given = plan.expandedGiven();
        if (given != null && given != handle.expanded()) {
            throw new IllegalArgumentException(
                    ("expanded=%s but the handle is of a dispatch with expanded=%s, whose layout a cached dispatch uses"
                                    + " too; leave it out")
                            .formatted(given, handle.expanded()));
        }
    }

    private void layout(DispatchLayout layout) {
        Tensor perRank = layout.numTokensPerRank();
        tensors.requireForm("layout.numTokensPerRank", perRank, DType.I32, TensorChecks.ANY);
        tensors.requireContiguous("layout.numTokensPerRank", perRank);
        tensors.requireForm(
                "layout.isTokenInRank",
                layout.isTokenInRank(),
                DType.BOOL,
                numTokens,
                perRank.size(0));
        tensors.requireContiguous("layout.isTokenInRank", layout.isTokenInRank());
        Tensor perExpert = layout.numTokensPerExpert();
        if (plan.topkIdx() != null && perExpert != null) {
            tensors.requireForm(
                    "layout.numTokensPerExpert", perExpert, DType.I32, plan.numExperts());
            tensors.requireContiguous("layout.numTokensPerExpert", perExpert);
        }
    }

    private void options() {
        int alignment = plan.expertAlignment();
        if (alignment < 1 || alignment > DispatchPlan.MAX_EXPERT_ALIGNMENT) {
            throw new IllegalArgumentException(
                    ("expertAlignment=%s is not in [1, %s]; use 1 for no padding, else the rows of a tile of"
                                    + " the GEMM")
                            .formatted(alignment, DispatchPlan.MAX_EXPERT_ALIGNMENT));
        }
        if (plan.numWorstTokens() < 0) {
            throw new IllegalArgumentException(
                    "numWorstTokens=%s is negative; use 0 for exact counts"
                            .formatted(plan.numWorstTokens()));
        }
    }
}
