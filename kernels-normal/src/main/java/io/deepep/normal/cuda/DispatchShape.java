package io.deepep.normal.cuda;

import io.deepep.Config;
import io.deepep.EpTopology;
import io.deepep.cuda.CudaFunction;
import io.deepep.normal.RingShape;
import io.deepep.normal.cuda.kernels.KernelConstants;
import io.deepep.spi.Layout;

/**
 * The kernel of a dispatch and how its shared memory is divided.
 *
 * @param numCopyWarps warps of a block that copy rows
 * @param basesOffset where the rows of blocks begin (several nodes: where the states of rings do)
 * @param stagesOffset where rows are staged
 */
record DispatchShape(
        CudaFunction kernel, int numCopyWarps, int basesOffset, int stagesOffset, int sharedBytes) {
    private static final int MAX_COPY_WARPS = 4;

    /** i32 for each rank of the node. */
    private static final int BLOCK_BASES_BYTES = Integer.BYTES * EpTopology.MAX_NVL_RANKS;

    static DispatchShape of(CudaNormalState state, Config config, int rowStride, int numExperts) {
        return state.internode == null
                ? oneNode(state, config, rowStride, numExperts)
                : acrossNodes(state, config, rowStride, numExperts);
    }

    private static DispatchShape oneNode(
            CudaNormalState state, Config config, int rowStride, int numExperts) {
        long bases = Layout.alignToLine(4L * numExperts);
        long stages = bases + Layout.alignToLine((long) BLOCK_BASES_BYTES * config.numSms());
        return fit(
                state,
                config,
                state.kernels.dispatch,
                new long[] {bases, stages, (long) KernelConstants.DISPATCH_STAGES * rowStride},
                MAX_COPY_WARPS);
    }

    private static DispatchShape acrossNodes(
            CudaNormalState state, Config config, int rowStride, int numExperts) {
        int most = Math.min(RingShape.MOST_RINGS, RingShape.mostWarps(config));
        long bases = Layout.alignToLine(4L * numExperts);
        long rings = (long) KernelConstants.RING_STATE_BYTES * most * state.topology.numRdmaRanks();
        return fit(
                state,
                config,
                state.internode.kernels.dispatch(),
                new long[] {
                    bases,
                    bases + Layout.alignToLine(rings),
                    (long) KernelConstants.ROW_STAGES * rowStride
                },
                most);
    }

    /** As many copy warps as fit; {@code offsets} are of bases, of stages, and a warp's bytes. */
    private static DispatchShape fit(
            CudaNormalState state, Config config, CudaFunction kernel, long[] offsets, int most) {
        int room = state.kernels.sharedBytes;
        long warps = Math.min(most, (room - offsets[1]) / offsets[2]);
        if (warps < 1) {
            throw new IllegalArgumentException(
                    "a row needs "
                            + offsets[2]
                            + " bytes of shared memory and the counts of experts and nodes need "
                            + offsets[1]
                            + ", but "
                            + state.context
                            + " has "
                            + room
                            + "; use a smaller hidden size, fewer experts or fewer nodes");
        }
        int sharedBytes = (int) (offsets[1] + warps * offsets[2]);
        state.requireResident(kernel, config.numSms(), KernelConstants.THREADS, sharedBytes);
        return new DispatchShape(
                kernel, (int) warps, (int) offsets[0], (int) offsets[1], sharedBytes);
    }
}
