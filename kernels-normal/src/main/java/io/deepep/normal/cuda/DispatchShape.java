package io.deepep.normal.cuda;

import io.deepep.Config;
import io.deepep.cuda.CudaFunction;
import io.deepep.normal.Rails;
import io.deepep.normal.RingShape;
import io.deepep.normal.cuda.kernels.KernelConstants;
import io.deepep.spi.Layout;

/**
 * The kernel of a dispatch and how its shared memory is divided.
 *
 * @param maskedKernel takes its place where {@link CudaNormalState#looksAtMasks}; or null
 * @param numCopyWarps warps of a block that copy rows; several nodes: of which half send and half
 *     forward
 * @param basesOffset where the rows of blocks begin (several nodes: where the states of rings do)
 * @param stagesOffset where rows are staged
 */
record DispatchShape(
        CudaFunction kernel,
        CudaFunction maskedKernel,
        int numCopyWarps,
        int basesOffset,
        int stagesOffset,
        int sharedBytes) {
    private static final int MAX_COPY_WARPS = 4;

    static DispatchShape of(CudaNormalState state, Config config, int rowStride, int numExperts) {
        return state.internode == null
                ? oneNode(state, config, rowStride, numExperts)
                : acrossNodes(state, config, rowStride, numExperts);
    }

    private static DispatchShape oneNode(
            CudaNormalState state, Config config, int rowStride, int numExperts) {
        long bases = Layout.alignToLine(4L * numExperts);
        long blockBytes = (long) Integer.BYTES * state.structs.maxRanks;
        long stages = bases + Layout.alignToLine(blockBytes * config.numSms());
        long warpBytes = (long) KernelConstants.DISPATCH_STAGES * rowStride;
        return fit(
                state,
                config,
                state.oneNode.dispatch(),
                null,
                new long[] {bases, stages, warpBytes},
                copyWarps(state, stages, warpBytes, MAX_COPY_WARPS),
                1);
    }

    private static DispatchShape acrossNodes(
            CudaNormalState state, Config config, int rowStride, int numExperts) {
        int most = RingShape.mostDispatchRings(config);
        long bases = Layout.alignToLine(4L * numExperts);
        long ringBytes = (long) KernelConstants.RING_STATE_BYTES * Rails.numCells(state.topology);
        long warpBytes = (long) KernelConstants.ROW_STAGES * rowStride;
        // A line for what aligning the states of rings adds.
        int warps =
                Integer.highestOneBit(
                        copyWarps(state, bases + Layout.LINE_BYTES, ringBytes + warpBytes, most));
        long stages = bases + Layout.alignToLine(ringBytes * Math.max(1, warps));
        return fit(
                state,
                config,
                state.internode.kernels.dispatch(),
                state.internode.maskedKernels == null
                        ? null
                        : state.internode.maskedKernels.dispatch(),
                new long[] {bases, stages, warpBytes},
                warps,
                2);
    }

    /** How many warps have room beside {@code fixedBytes}, at most {@code most}; 0 if none has. */
    private static int copyWarps(CudaNormalState state, long fixedBytes, long warpBytes, int most) {
        return Math.clamp((state.sharedBytes() - fixedBytes) / warpBytes, 0, most);
    }

    /**
     * @param offsets of bases, of stages, and a warp's bytes there
     * @param fewest warps that a block needs
     */
    private static DispatchShape fit(
            CudaNormalState state,
            Config config,
            CudaFunction kernel,
            CudaFunction maskedKernel,
            long[] offsets,
            int warps,
            int fewest) {
        if (warps < fewest) {
            throw new IllegalArgumentException(
                    "a row needs "
                            + fewest * offsets[2]
                            + " bytes of shared memory and the counts of experts and nodes need "
                            + offsets[1]
                            + ", but "
                            + state.context
                            + " has "
                            + state.sharedBytes()
                            + "; use a smaller hidden size, fewer experts or fewer nodes");
        }
        int sharedBytes = (int) (offsets[1] + warps * offsets[2]);
        if (maskedKernel != null) {
            state.requireResident(
                    maskedKernel, config.numSms(), KernelConstants.THREADS, sharedBytes);
        }
        state.requireResident(kernel, config.numSms(), KernelConstants.THREADS, sharedBytes);
        return new DispatchShape(
                kernel, maskedKernel, warps, (int) offsets[0], (int) offsets[1], sharedBytes);
    }

    /** The kernel of the next launch. */
    CudaFunction kernel(CudaNormalState state) {
        return state.looksAtMasks() ? maskedKernel : kernel;
    }
}
