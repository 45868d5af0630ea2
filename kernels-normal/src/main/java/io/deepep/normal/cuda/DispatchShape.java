package io.deepep.normal.cuda;

import io.deepep.Config;
import io.deepep.normal.Rails;
import io.deepep.normal.RingShape;
import io.deepep.normal.cuda.kernels.CallKernels;
import io.deepep.normal.cuda.kernels.KernelConstants;
import io.deepep.spi.Layout;

/**
 * How the shared memory of a dispatch's blocks is divided.
 *
 * @param numCopyWarps warps of a block that copy rows; several nodes: of which half send and half
 *     forward
 * @param basesOffset where the rows of blocks begin (several nodes: where the states of rings do)
 * @param stagesOffset where rows are staged
 */
record DispatchShape(int numCopyWarps, int basesOffset, int stagesOffset, int sharedBytes) {
    private static final int MAX_COPY_WARPS = 4;

    static DispatchShape of(CudaNormalState state, Config config, int rowStride, int numExperts) {
        boolean internode = state.internode != null;
        long bases = Layout.alignToLine(4L * numExperts);
        int stagesOfWarp = internode ? KernelConstants.ROW_STAGES : KernelConstants.DISPATCH_STAGES;
        long warpBytes = (long) stagesOfWarp * rowStride;
        long stages;
        int warps;
        if (internode) {
            long rings = (long) KernelConstants.RING_STATE_BYTES * Rails.numCells(state.topology);
            // A line for what aligning the states of rings adds.
            long others = bases + Layout.LINE_BYTES;
            int most = RingShape.mostDispatchRings(config);
            warps = Integer.highestOneBit(copyWarps(state, others, rings + warpBytes, most));
            stages = bases + Layout.alignToLine(rings * Math.max(1, warps));
        } else {
            long blockBytes = (long) Integer.BYTES * state.structs.maxRanks;
            stages = bases + Layout.alignToLine(blockBytes * config.numSms());
            warps = copyWarps(state, stages, warpBytes, MAX_COPY_WARPS);
        }
        int fewest = internode ? 2 : 1;
        if (warps < fewest) {
            throw new IllegalArgumentException(
                    ("a row needs %s bytes of shared memory and the counts of experts and nodes need %s, but %s has %s;"
                                    + " use a smaller hidden size, fewer experts or fewer nodes")
                            .formatted(
                                    fewest * warpBytes,
                                    stages,
                                    state.context,
                                    state.sharedBytes()));
        }
        int sharedBytes = (int) (stages + warps * warpBytes);
        state.requireResident(
                CallKernels::dispatch, config.numSms(), KernelConstants.THREADS, sharedBytes);
        return new DispatchShape(warps, (int) bases, (int) stages, sharedBytes);
    }

    /** How many warps have room beside {@code others}, at most {@code most}; 0 if none has. */
    private static int copyWarps(CudaNormalState state, long others, long warpBytes, int most) {
        return Math.clamp((state.sharedBytes() - others) / warpBytes, 0, most);
    }
}
