package io.deepep.lowlatency;

import io.deepep.CombineFormat;
import io.deepep.DType;
import io.deepep.Device;
import io.deepep.EpTopology;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.spi.RowFormat;
import io.deepep.spi.TensorChecks;

/**
 * What both backends demand of a low-latency plan before anything is started. Every method throws
 * {@link IllegalArgumentException} with the cure.
 */
public final class LowLatencyChecks {
    private final LowLatencyLimits limits;
    private final int numLocalExperts;
    private final long numSlots;
    private final int numRanks;
    private final TensorChecks tensors;

    /**
     * Checks for one rank's buffer whose tensors lie on {@code device}.
     *
     * @param mostLocalExperts that a selection has bits for
     */
    public LowLatencyChecks(
            LowLatencyLimits limits, EpTopology topology, Device device, int mostLocalExperts) {
        this.limits = limits;
        this.numRanks = topology.numRanks();
        this.numLocalExperts = limits.numLocalExperts(numRanks);
        if (numLocalExperts > mostLocalExperts) {
            throw new IllegalArgumentException(
                    "numExperts=%s is more than %s on each of %s ranks; use fewer experts or more ranks"
                            .formatted(limits.numExperts(), mostLocalExperts, numRanks));
        }
        this.numSlots = (long) numRanks * limits.maxTokens();
        this.tensors = new TensorChecks(device);
    }

    /** Checks a dispatch. */
    public void dispatch(LowLatencyDispatchPlan plan) {
        Tensor x = plan.x();
        rows("x", x, TensorChecks.ANY, TensorChecks.ANY);
        requireHidden(plan.format().isFp8(), plan.hidden());
        if (x.size(0) > limits.maxTokens()) {
            throw new IllegalArgumentException(
                    "x has %s tokens, but the buffer was opened for maxTokens=%s; raise LowLatencyLimits.maxTokens"
                            .formatted(x.size(0), limits.maxTokens()));
        }
        Tensor topkIdx = plan.topkIdx();
        contiguous("topkIdx", topkIdx, DType.I64, x.size(0), TensorChecks.ANY);
        if (topkIdx.size(1) < 1 || topkIdx.size(1) > limits.maxTopk()) {
            throw new IllegalArgumentException(
                    "numTopk=%s is not in [1, maxTopk=%s]; raise LowLatencyLimits.maxTopk"
                            .formatted(topkIdx.size(1), limits.maxTopk()));
        }
        optional("topkWeights", plan.topkWeights(), DType.F32, topkIdx.shape());
        optional("cumulativeStats", plan.cumulativeStats(), DType.I32, numLocalExperts);
        optional("waitCostStats", plan.waitCostStats(), DType.I64, numRanks);
    }

    /**
     * Checks a combine; that the handle belongs to the buffer is the backend's to check first.
     *
     * @param weighted whether the handle's dispatch was given weights
     */
    public void combine(LowLatencyCombinePlan plan, boolean weighted) {
        long numTokens = plan.handle().numTokens();
        int numTopk = plan.handle().numTopk();
        rows("x", plan.x(), numLocalExperts, numSlots, TensorChecks.ANY);
        requireHidden(plan.format() != CombineFormat.BF16, plan.hidden());
        contiguous("topkIdx", plan.topkIdx(), DType.I64, numTokens, numTopk);
        optional("topkWeights", plan.topkWeights(), DType.F32, numTokens, numTopk);
        if (plan.isPreReduced() && !weighted) {
            throw new IllegalArgumentException(
                    "the combine is pre-reduced, but its dispatch had no topkWeights; give them to"
                            + " LowLatencyDispatchPlan, or combine with weights");
        }
        if (plan.out() != null) {
            rows("out", plan.out(), numTokens, plan.hidden());
        }
        optional("waitCostStats", plan.waitCostStats(), DType.I64, numRanks);
    }

    /** Rows that are cast end with a whole group of channels. */
    private void requireHidden(boolean areCast, int hidden) {
        RowFormat.requireHidden(areCast ? DType.FP8_E4M3 : DType.BF16, hidden);
        RowFormat.requireWithin(hidden, "LowLatencyLimits.hidden", limits.hidden());
    }

    private void rows(String name, Tensor tensor, long... shape) {
        tensors.require(name, tensor, DType.BF16, shape);
        tensors.requireContiguousRows(name, tensor);
    }

    private void contiguous(String name, Tensor tensor, DType dtype, long... shape) {
        tensors.require(name, tensor, dtype, shape);
        tensors.requireContiguous(name, tensor);
    }

    private void optional(String name, Tensor tensor, DType dtype, long... shape) {
        if (tensor != null) {
            contiguous(name, tensor, dtype, shape);
        }
    }
}
