package io.deepep.lowlatency.cuda;

import io.deepep.EpTopology;
import io.deepep.LowLatencyCombineRequest;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchRequest;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyHandle;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaStream;
import io.deepep.lowlatency.LowLatencyKernels;
import io.deepep.spi.Operation;
import java.util.List;

/**
 * Low-latency mode of one rank on a GPU, one node.
 *
 * <p>A rank that was masked because it timed out is out of step: unmask it only with {@link #reset}
 * on all ranks. Ranks that were masked and unmasked by hand and kept making the same calls are in
 * step, and what they did not get or send counts as absent.
 */
public final class CudaLowLatencyKernels implements LowLatencyKernels, AutoCloseable {
    /**
     * Where a rank works.
     *
     * @param context its GPU
     * @param stream the stream that all its operations are enqueued on
     * @param topology its place, on one node
     * @param heaps of every rank, the address as this GPU sees it; each holds a {@link
     *     CudaLowLatencyLayout}, zeroed up to {@link CudaLowLatencyLayout#headersEnd}
     * @param ranksOnDevice ranks that share this GPU
     * @param timeoutNanos how long a kernel waits for a peer
     */
    public record Place(
            CudaContext context,
            CudaStream stream,
            EpTopology topology,
            List<Long> heaps,
            int ranksOnDevice,
            long timeoutNanos) {}

    private final CudaLowLatencyState state;

    /**
     * Loads the kernels of low-latency mode onto a GPU unless this process has them there. To load
     * is to wait for every kernel of the GPU, so this comes before any that waits for another rank.
     */
    public static void load(CudaContext context) {
        LowLatencyGpu.of(context);
    }

    /**
     * Loads the kernels unless this process has them, and allocates the rank's memory but for
     * received rows: while no kernel on this GPU waits for another rank.
     *
     * @param maskTimedOutRanks whether a rank that does not come is masked instead of failing the
     *     call
     */
    public CudaLowLatencyKernels(Place place, LowLatencyLimits limits, boolean maskTimedOutRanks) {
        int numLocalExperts = limits.numLocalExperts(place.topology().numRanks());
        if (numLocalExperts > LowLatencyStructs.MAX_LOCAL_EXPERTS) {
            throw new IllegalArgumentException(
                    "numExperts="
                            + limits.numExperts()
                            + " are more than "
                            + LowLatencyStructs.MAX_LOCAL_EXPERTS
                            + " on each of "
                            + place.topology().numRanks()
                            + " ranks");
        }
        this.state = new CudaLowLatencyState(place, limits, maskTimedOutRanks);
    }

    @Override
    public Operation<LowLatencyDispatchResult> prepareDispatch(LowLatencyDispatchRequest request) {
        return new CudaLowLatencyDispatch(state, request);
    }

    @Override
    public Operation<LowLatencyCombineResult> prepareCombine(LowLatencyCombineRequest request) {
        return new CudaLowLatencyCombine(state, request);
    }

    @Override
    public Tensor combineBuffer(LowLatencyHandle handle) {
        return CudaLowLatencyHandle.of(handle, state).bank().combineBuffer();
    }

    @Override
    public void reset() {
        state.reset();
    }

    @Override
    public void updateMask(int rank, boolean masked) {
        state.mask().update(rank, masked);
    }

    @Override
    public int[] queryMask() {
        return state.mask().query();
    }

    /** Releases the rank's memory, now that its stream is done; waits for nothing. */
    @Override
    public void close() {
        state.close();
    }
}
