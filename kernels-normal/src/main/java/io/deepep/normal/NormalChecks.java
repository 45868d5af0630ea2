package io.deepep.normal;

import io.deepep.CombineRequest;
import io.deepep.DType;
import io.deepep.Device;
import io.deepep.DispatchHandle;
import io.deepep.DispatchLayout;
import io.deepep.DispatchRequest;
import io.deepep.EpTopology;
import io.deepep.Fp8E4m3;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.spi.TensorChecks;

/**
 * What both backends demand of a normal-mode request before anything is started. Every method
 * throws {@link IllegalArgumentException} with the cure.
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

    /** Checks a dispatch; that a handle belongs to the buffer is the backend's to check first. */
    public void dispatch(DispatchRequest request) {
        requireX(request);
        if (request.handle() != null) {
            requireCached(request);
            return;
        }
        long numTokens = request.x().size(0);
        if (request.topkIdx() == null && request.layout() == null) {
            throw new IllegalArgumentException(
                    "the request names no routing; give topk(...), layout(...) or handle(...)");
        }
        if (request.topkIdx() != null) {
            requireTopkOf(request, numTokens);
        } else if (request.topkWeights() != null || request.expanded()) {
            throw new IllegalArgumentException(
                    "topkWeights and expanded rows need topkIdx; give topk(...) as well");
        }
        if (request.layout() != null) {
            requireLayout(
                    request.layout(),
                    request.topkIdx() == null ? -1 : request.numExperts(),
                    numTokens);
        }
        requireRows(request);
    }

    private void requireX(DispatchRequest request) {
        DType dtype = request.x().dtype();
        if (dtype != DType.BF16 && dtype != DType.FP8_E4M3) {
            throw new IllegalArgumentException(
                    "x is " + request.x() + "; dispatch sends BF16, or FP8_E4M3 with scales");
        }
        tensors.require("x", request.x(), dtype, TensorChecks.ANY, TensorChecks.ANY);
        requireTokens("x", request.x().size(0));
        long hidden = request.x().size(1);
        requireHidden(hidden, dtype == DType.FP8_E4M3 ? Fp8E4m3.CHANNELS_PER_SCALE : 8, dtype);
        tensors.requireContiguousRows("x", request.x());
        if ((request.scales() != null) != (dtype == DType.FP8_E4M3)) {
            throw new IllegalArgumentException(
                    dtype == DType.FP8_E4M3
                            ? "x is FP8_E4M3 but scales=null; give scales F32 [T,H/128]"
                            : "scales are given but x is " + dtype);
        }
        if (request.scales() != null) {
            tensors.require(
                    "scales",
                    request.scales(),
                    DType.F32,
                    request.x().size(0),
                    hidden / Fp8E4m3.CHANNELS_PER_SCALE);
        }
    }

    private void requireCached(DispatchRequest request) {
        DispatchHandle handle = request.handle();
        if (request.topkIdx() != null || request.layout() != null || request.expanded()) {
            throw new IllegalArgumentException(
                    "handle excludes topk, layout and expanded; the handle's routing and row order are used again");
        }
        if (request.x().size(0) != handle.numTokens() || request.x().size(1) != handle.hidden()) {
            throw new IllegalArgumentException(
                    "x is "
                            + request.x()
                            + " but the handle is of a dispatch of ["
                            + handle.numTokens()
                            + ", "
                            + handle.hidden()
                            + "]; use a handle of the same shape");
        }
        if (request.numWorstTokens() != 0 && request.numWorstTokens() != handle.numRecvTokens()) {
            throw new IllegalArgumentException(
                    "numWorstTokens="
                            + request.numWorstTokens()
                            + " but the handle has numRecvTokens="
                            + handle.numRecvTokens()
                            + "; leave it at 0 with a handle");
        }
        requireAlignment(request.expertAlignment());
    }

    private void requireTopkOf(DispatchRequest request, long numTokens) {
        tensors.require("topkIdx", request.topkIdx(), DType.I64, numTokens, TensorChecks.ANY);
        tensors.requireContiguous("topkIdx", request.topkIdx());
        requireTopk(request.topkIdx().size(1));
        requireExperts(request.numExperts());
        if (request.topkWeights() != null) {
            tensors.require(
                    "topkWeights",
                    request.topkWeights(),
                    DType.F32,
                    numTokens,
                    request.topkIdx().size(1));
            tensors.requireContiguous("topkWeights", request.topkWeights());
        }
    }

    private void requireLayout(DispatchLayout layout, int numExperts, long numTokens) {
        tensors.require(
                "layout.isTokenInRank",
                layout.isTokenInRank(),
                DType.BOOL,
                numTokens,
                topology.numRanks());
        tensors.require(
                "layout.numTokensPerRank",
                layout.numTokensPerRank(),
                DType.I32,
                topology.numRanks());
        tensors.requireContiguous("layout.numTokensPerRank", layout.numTokensPerRank());
        if (numExperts >= 0 && layout.numTokensPerExpert() != null) {
            tensors.require(
                    "layout.numTokensPerExpert",
                    layout.numTokensPerExpert(),
                    DType.I32,
                    numExperts);
            tensors.requireContiguous("layout.numTokensPerExpert", layout.numTokensPerExpert());
        }
    }

    private void requireRows(DispatchRequest request) {
        requireAlignment(request.expertAlignment());
        requireCountable(request);
        int worst = request.numWorstTokens();
        int capacity = limits.recvCapacity(topology.numRanks());
        if (worst < 0) {
            throw new IllegalArgumentException(
                    "numWorstTokens=" + worst + " is negative; use 0 for exact counts");
        }
        if (!request.expanded() && worst > capacity) {
            throw new IllegalArgumentException(
                    "numWorstTokens="
                            + worst
                            + " exceeds the buffer's "
                            + capacity
                            + " rows; ask for no more, or raise NormalLimits.maxRecvTokens");
        }
    }

    /**
     * Demands that the rows of all experts, each count rounded up, are counted by an int whatever
     * the routing: found after counts were exchanged, an overflow would be one rank's alone.
     */
    private void requireCountable(DispatchRequest request) {
        int alignment = request.expertAlignment();
        if (request.topkIdx() == null || (alignment == 1 && !request.expanded())) {
            return;
        }
        int numLocalExperts = request.numExperts() / topology.numRanks();
        long selections = limits.recvCapacity(topology.numRanks()) * request.topkIdx().size(1);
        long rows = selections + (long) numLocalExperts * alignment;
        if (rows > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(
                    "expertAlignment="
                            + alignment
                            + " can make "
                            + rows
                            + " rows of "
                            + numLocalExperts
                            + " local experts and "
                            + selections
                            + " selections, more than an int counts; lower it, or NormalLimits.maxRecvTokens");
        }
    }

    /**
     * Checks a combine; that the handle belongs to the buffer is the backend's to check first.
     *
     * @param numRows rows that the dispatch of the handle delivered
     */
    public void combine(CombineRequest request, int numRows) {
        DispatchHandle handle = request.handle();
        combineRows(request, numRows);
        tensors.requireContiguousRows("x", request.x());
        if (request.topkWeights() != null) {
            if (handle.numTopk() == 0) {
                throw new IllegalArgumentException(
                        "topkWeights are given but the dispatch of the handle had no top-k; leave them out");
            }
            tensors.requireContiguous("topkWeights", request.topkWeights());
        }
        requireTokenRows("bias0", request.bias0(), handle);
        requireTokenRows("bias1", request.bias1(), handle);
        requireTokenRows("out", request.out(), handle);
    }

    /**
     * The part of {@link #combine} that can change when the handle's request is dispatched again.
     */
    public void combineRows(CombineRequest request, int numRows) {
        DispatchHandle handle = request.handle();
        tensors.require("x", request.x(), DType.BF16, numRows, handle.hidden());
        if (request.topkWeights() != null && handle.expanded()) {
            tensors.require("topkWeights", request.topkWeights(), DType.F32, numRows);
        } else if (request.topkWeights() != null) {
            tensors.require(
                    "topkWeights", request.topkWeights(), DType.F32, numRows, handle.numTopk());
        }
    }

    private void requireTokenRows(String name, Tensor tensor, DispatchHandle handle) {
        if (tensor != null) {
            tensors.require(name, tensor, DType.BF16, handle.numTokens(), handle.hidden());
            tensors.requireContiguousRows(name, tensor);
        }
    }

    private void requireTokens(String name, long numTokens) {
        if (numTokens > limits.maxTokens()) {
            throw new IllegalArgumentException(
                    name
                            + " has "
                            + numTokens
                            + " tokens, more than NormalLimits.maxTokens="
                            + limits.maxTokens()
                            + "; raise the limit");
        }
    }

    private void requireHidden(long hidden, int multiple, DType dtype) {
        if (hidden < multiple || hidden % multiple != 0) {
            throw new IllegalArgumentException(
                    "hidden="
                            + hidden
                            + " is not a positive multiple of "
                            + multiple
                            + ", as "
                            + dtype
                            + " needs");
        }
        if (hidden > limits.hidden()) {
            throw new IllegalArgumentException(
                    "hidden="
                            + hidden
                            + " exceeds NormalLimits.hidden="
                            + limits.hidden()
                            + "; raise the limit");
        }
    }

    private void requireTopk(long numTopk) {
        if (numTopk < 1 || numTopk > limits.maxTopk()) {
            throw new IllegalArgumentException(
                    "numTopk="
                            + numTopk
                            + " is not in [1, NormalLimits.maxTopk="
                            + limits.maxTopk()
                            + "]; raise the limit if need be");
        }
    }

    private void requireExperts(int numExperts) {
        if (numExperts < 1 || numExperts > limits.maxExperts()) {
            throw new IllegalArgumentException(
                    "numExperts="
                            + numExperts
                            + " is not in [1, NormalLimits.maxExperts="
                            + limits.maxExperts()
                            + "]; raise the limit if need be");
        }
        if (numExperts % topology.numRanks() != 0) {
            throw new IllegalArgumentException(
                    "numExperts="
                            + numExperts
                            + " is not a multiple of numRanks="
                            + topology.numRanks()
                            + "; every rank holds as many experts");
        }
    }

    private static void requireAlignment(int alignment) {
        if (alignment < 1) {
            throw new IllegalArgumentException(
                    "expertAlignment=" + alignment + " must be at least 1; use 1 for no padding");
        }
    }
}
