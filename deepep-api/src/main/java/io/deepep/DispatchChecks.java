package io.deepep;

import io.deepep.spi.TensorChecks;

/** What a {@link DispatchRequest} must be for any buffer. */
final class DispatchChecks {
    private final DispatchRequest request;
    private final TensorChecks tensors;
    private final long numTokens;
    private final long hidden;

    DispatchChecks(DispatchRequest request) {
        this.request = request;
        this.tensors = new TensorChecks(request.x().device(), "x lies on");
        DType dtype = request.x().dtype();
        if (dtype != DType.BF16 && dtype != DType.FP8_E4M3) {
            throw new IllegalArgumentException(
                    "x is " + request.x() + "; dispatch sends BF16, or FP8_E4M3 with scales");
        }
        tensors.requireForm("x", request.x(), dtype, TensorChecks.ANY, TensorChecks.ANY);
        this.numTokens = request.x().size(0);
        this.hidden = request.x().size(1);
    }

    void check() {
        tokens();
        if (request.topkIdx() != null) {
            topk();
        } else {
            withoutTopk();
        }
        if (request.handle() != null) {
            cached(request.handle());
        }
        if (request.layout() != null) {
            layout(request.layout());
        }
        options();
    }

    private void tokens() {
        Tensor x = request.x();
        boolean fp8 = x.dtype() == DType.FP8_E4M3;
        int multiple = fp8 ? Fp8E4m3.CHANNELS_PER_SCALE : 8;
        if (hidden < multiple || hidden % multiple != 0) {
            throw new IllegalArgumentException(
                    "hidden="
                            + hidden
                            + " is not a positive multiple of "
                            + multiple
                            + ", as "
                            + x.dtype()
                            + " needs");
        }
        tensors.requireContiguousRows("x", x);
        if ((request.scales() != null) != fp8) {
            throw new IllegalArgumentException(
                    fp8
                            ? "x is FP8_E4M3 but scales=null; give scales F32 [T,H/128]"
                            : "scales are given but x is " + x.dtype());
        }
        if (fp8) {
            long groups = hidden / Fp8E4m3.CHANNELS_PER_SCALE;
            tensors.requireForm("scales", request.scales(), DType.F32, numTokens, groups);
        }
    }

    private void topk() {
        Tensor idx = request.topkIdx();
        tensors.requireForm("topkIdx", idx, DType.I64, numTokens, TensorChecks.ANY);
        tensors.requireContiguous("topkIdx", idx);
        if (request.topkWeights() != null) {
            tensors.requireForm(
                    "topkWeights", request.topkWeights(), DType.F32, numTokens, idx.size(1));
            tensors.requireContiguous("topkWeights", request.topkWeights());
        }
        if (request.numExperts() < 1) {
            throw new IllegalArgumentException(
                    "numExperts=" + request.numExperts() + " must be at least 1");
        }
    }

    private void withoutTopk() {
        if (request.expanded()) {
            throw new IllegalArgumentException(
                    "expanded rows are grouped by expert, but the routing names none; give"
                            + " topk(...)");
        }
        if (request.handle() != null && request.layout() != null) {
            throw new IllegalArgumentException(
                    "expectLayout goes with topk(...) alone; the routing of a handle was compared"
                            + " when it was made");
        }
    }

    private void cached(DispatchHandle handle) {
        if (numTokens != handle.numTokens() || hidden != handle.hidden()) {
            throw new IllegalArgumentException(
                    "x is "
                            + request.x()
                            + " but the handle is of a dispatch of ["
                            + handle.numTokens()
                            + ", "
                            + handle.hidden()
                            + "]; use a handle of the same shape");
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
        Tensor perExpert = layout.numTokensPerExpert();
        if (request.topkIdx() != null && perExpert != null) {
            tensors.requireForm(
                    "layout.numTokensPerExpert", perExpert, DType.I32, request.numExperts());
            tensors.requireContiguous("layout.numTokensPerExpert", perExpert);
        }
    }

    private void options() {
        if (request.expertAlignment() < 1) {
            throw new IllegalArgumentException(
                    "expertAlignment="
                            + request.expertAlignment()
                            + " must be at least 1; use 1 for no padding");
        }
        if (request.numWorstTokens() < 0) {
            throw new IllegalArgumentException(
                    "numWorstTokens="
                            + request.numWorstTokens()
                            + " is negative; use 0 for exact counts");
        }
    }
}
