package io.deepep.normal;

import io.deepep.CombineFormat;
import io.deepep.CombinePlan;
import io.deepep.DType;
import io.deepep.Device;
import io.deepep.DispatchHandle;
import io.deepep.DispatchLayout;
import io.deepep.DispatchPlan;
import io.deepep.EpTopology;
import io.deepep.Fp8E4m3;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.spi.RowFormat;
import io.deepep.spi.TensorChecks;

/**
 * What both backends demand of a normal-mode plan before anything is started. Every method throws
 * {@link IllegalArgumentException} with the cure.
 */
public final class NormalChecks {
    private final NormalLimits limits;
    private final EpTopology topology;
    private final TensorChecks tensors;

    /** Checks for one rank's buffer whose tensors lie on {@code device}. */
    public NormalChecks(NormalLimits limits, EpTopology topology, Device device) {
        this.limits = limits;
        this.topology = topology;
        this.tensors = new TensorChecks(device);
    }

    /** Checks the arguments of a layout. */
    public void layout(Tensor topkIdx, int numExperts) {
        tensors.require("topkIdx", topkIdx, DType.I64, TensorChecks.ANY, TensorChecks.ANY);
        tensors.requireContiguous("topkIdx", topkIdx);
        requireTokens("topkIdx", topkIdx.size(0));
        requireTopk(topkIdx.size(1));
        requireExperts(numExperts);
    }

    /**
     * Checks what of a dispatch is the buffer's to check; the plan has checked itself when it was
     * built. That a handle belongs to the buffer is the backend's to check first.
     */
    public void dispatch(DispatchPlan plan) {
        Tensor x = plan.x();
        // All other tensors are where x is.
        tensors.require("x", x, x.dtype(), TensorChecks.ANY, TensorChecks.ANY);
        requireTokens("x", x.size(0));
        requireHidden(x.size(1));
        if (plan.handle() != null) {
            requireCached(plan);
            return;
        }
        if (plan.topkIdx() != null) {
            requireTopk(plan.topkIdx().size(1));
            requireExperts(plan.numExperts());
        }
        if (plan.layout() != null) {
            requireLayout(plan.layout());
        }
        requireRows(plan);
    }

    private void requireCached(DispatchPlan plan) {
        int worst = plan.numWorstTokens();
        int rows = plan.handle().numRecvTokens();
        if (worst != 0 && worst != rows) {
            throw new IllegalArgumentException(
                    "numWorstTokens=%s but the handle has numRecvTokens=%s; leave it at 0 with a handle"
                            .formatted(worst, rows));
        }
        int given = plan.expertAlignment();
        int alignment = ((NormalHandle) plan.handle()).expertAlignment();
        if (given != 1 && given != alignment) {
            throw new IllegalArgumentException(
                    "expertAlignment=%s but the handle is of a dispatch with expertAlignment=%s; leave it out"
                            .formatted(given, alignment));
        }
    }

    private void requireLayout(DispatchLayout layout) {
        tensors.require(
                "layout.numTokensPerRank",
                layout.numTokensPerRank(),
                DType.I32,
                topology.numRanks());
    }

    private void requireRows(DispatchPlan plan) {
        int worst = plan.numWorstTokens();
        int capacity = limits.recvCapacity(topology.numRanks());
        if (plan.expanded()) {
            requireExpandedRows(plan);
        } else if (worst > capacity) {
            throw new IllegalArgumentException(
                    "numWorstTokens=%s exceeds the buffer's %s rows; ask for no more, or raise NormalLimits.maxRecvTokens"
                            .formatted(worst, capacity));
        }
    }

    /**
     * Demands that the rows of all experts, each count rounded up, are counted by an int whatever
     * the routing: found after counts were exchanged, an overflow would be one rank's alone.
     */
    private void requireExpandedRows(DispatchPlan plan) {
        int numLocalExperts = plan.numExperts() / topology.numRanks();
        long selections = limits.recvCapacity(topology.numRanks()) * plan.topkIdx().size(1);
        long rows = selections + (long) numLocalExperts * plan.expertAlignment();
        if (rows > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(
                    ("expertAlignment=%s can make %s rows of %s local experts and %s selections, more than an int"
                                    + " counts; lower it, or NormalLimits.maxRecvTokens")
                            .formatted(plan.expertAlignment(), rows, numLocalExperts, selections));
        }
        long most = selections + (long) numLocalExperts * DispatchPlan.MAX_EXPERT_ALIGNMENT;
        if (plan.numWorstTokens() > most) {
            throw new IllegalArgumentException(
                    "numWorstTokens=%s exceeds the %s rows that can arrive in the expanded layout with any alignment; ask for no more"
                            .formatted(plan.numWorstTokens(), most));
        }
    }

    /**
     * Checks a combine; that the handle belongs to the buffer is the backend's to check first.
     *
     * @param numRows rows that the dispatch of the handle delivered
     */
    public void combine(CombinePlan plan, int numRows) {
        DispatchHandle handle = plan.handle();
        requireRowSize(plan);
        if (plan.topkWeights() != null && handle.numTopk() == 0) {
            throw new IllegalArgumentException(
                    "topkWeights are given but the dispatch of the handle had no top-k; leave"
                            + " them out");
        }
        combineRows(plan, numRows);
        tensors.requireContiguousRows("x", plan.x());
        if (plan.topkWeights() != null) {
            tensors.requireContiguous("topkWeights", plan.topkWeights());
        }
        requireTokenRows("bias0", plan.bias0(), plan);
        requireTokenRows("bias1", plan.bias1(), plan);
        requireTokenRows("out", plan.out(), plan);
    }

    /** It may differ from that of the dispatch. */
    private void requireRowSize(CombinePlan plan) {
        DType dtype = plan.x().dtype();
        tensors.require("x", plan.x(), dtype, TensorChecks.ANY, TensorChecks.ANY);
        RowFormat.requireHidden(dtype, plan.hidden());
        requireHidden(plan.hidden());
        if (plan.format() == CombineFormat.FP8) {
            requireWholeGroups(plan.hidden());
        }
    }

    private static void requireWholeGroups(int hidden) {
        if (hidden % Fp8E4m3.CHANNELS_PER_SCALE != 0) {
            throw new IllegalArgumentException(
                    "hidden=%s is not a multiple of %s, which share a scale in a combine with format=FP8; use BF16"
                            .formatted(hidden, Fp8E4m3.CHANNELS_PER_SCALE));
        }
    }

    /** Demands that rows of a format can be written into the combine region for a handle. */
    public static void combineBuffer(DispatchHandle handle, CombineFormat format) {
        if (handle.expanded()) {
            throw new IllegalArgumentException(
                    "the handle is expanded: combine sums a token's rows into the buffer; compute them into"
                            + " memory of your own");
        }
        if (format == CombineFormat.FP8) {
            requireWholeGroups(handle.hidden());
        }
    }

    /**
     * Demands that rows lie outside the combine region, into which they are to be cast, summed or
     * packed.
     *
     * @param layout of the memory at {@code heap}
     */
    public static void combineFromElsewhere(CombinePlan plan, NormalNvlLayout layout, long heap) {
        if (plan.scales() == null) {
            if (layout.combineRegionHas(heap, plan.x())) {
                throw new IllegalArgumentException(
                        plan.format() == CombineFormat.FP8
                                ? "x lies in the buffer's combine region, into which format=FP8 casts rows; give rows in"
                                        + " other memory, or FP8 rows as getFp8CombineBuffer has them"
                                : "x lies in the buffer's combine region, into which its rows must be copied; give"
                                        + " rows in other memory, or in place as getCombineBuffer has them");
            }
        } else if (layout.combineRegionHas(heap, plan.x())
                || layout.combineRegionHas(heap, plan.scales())) {
            throw new IllegalArgumentException(
                    ("x is %s and scales are %s, in the buffer's combine region but not at the places that"
                                    + " getFp8CombineBuffer gives; use its tensors, or other memory")
                            .formatted(plan.x(), plan.scales()));
        }
    }

    /** The part of {@link #combine} that can change when the handle's plan is dispatched again. */
    public void combineRows(CombinePlan plan, int numRows) {
        DispatchHandle handle = plan.handle();
        boolean fp8 = plan.scales() != null;
        DType dtype = fp8 ? DType.FP8_E4M3 : DType.BF16;
        tensors.require("x", plan.x(), dtype, numRows, plan.hidden());
        if (fp8) {
            int groups = plan.hidden() / Fp8E4m3.CHANNELS_PER_SCALE;
            tensors.require("scales", plan.scales(), DType.F32, numRows, groups);
        }
        if (plan.topkWeights() != null && handle.expanded()) {
            tensors.require("topkWeights", plan.topkWeights(), DType.F32, numRows);
        } else if (plan.topkWeights() != null) {
            tensors.require(
                    "topkWeights", plan.topkWeights(), DType.F32, numRows, handle.numTopk());
        }
    }

    private void requireTokenRows(String name, Tensor tensor, CombinePlan plan) {
        if (tensor != null) {
            int numTokens = plan.handle().numTokens();
            tensors.require(name, tensor, DType.BF16, numTokens, plan.hidden());
            tensors.requireContiguousRows(name, tensor);
        }
    }

    private void requireTokens(String name, long numTokens) {
        if (numTokens > limits.maxTokens()) {
            throw new IllegalArgumentException(
                    "%s has %s tokens, more than NormalLimits.maxTokens=%s; raise the limit"
                            .formatted(name, numTokens, limits.maxTokens()));
        }
    }

    private void requireHidden(long hidden) {
        RowFormat.requireWithin(hidden, "NormalLimits.hidden", limits.hidden());
    }

    private void requireTopk(long numTopk) {
        if (numTopk < 1 || numTopk > limits.maxTopk()) {
            throw new IllegalArgumentException(
                    "numTopk=%s is not in [1, NormalLimits.maxTopk=%s]; raise the limit if need be"
                            .formatted(numTopk, limits.maxTopk()));
        }
    }

    private void requireExperts(int numExperts) {
        if (numExperts < 1 || numExperts > limits.maxExperts()) {
            throw new IllegalArgumentException(
                    "numExperts=%s is not in [1, NormalLimits.maxExperts=%s]; raise the limit if need be"
                            .formatted(numExperts, limits.maxExperts()));
        }
        if (numExperts % topology.numRanks() != 0) {
            throw new IllegalArgumentException(
                    "numExperts=%s is not a multiple of numRanks=%s; every rank must hold the same number of experts"
                            .formatted(numExperts, topology.numRanks()));
        }
    }
}
