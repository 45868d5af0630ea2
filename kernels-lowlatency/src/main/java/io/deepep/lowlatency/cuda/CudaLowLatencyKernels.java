package io.deepep.lowlatency.cuda;

import io.deepep.EpTopology;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyHandle;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.NetworkLibrary;
import io.deepep.lowlatency.BankHandle;
import io.deepep.lowlatency.LowLatencyKernels;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.spi.CallTimeouts;
import io.deepep.spi.Operation;
import java.util.List;

/**
 * Low-latency mode of one rank on a GPU.
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
     * @param topology its place
     * @param heaps of every rank, the address as this GPU sees it, 0 for those that only the
     *     network reaches; each holds a {@link LowLatencyLayout}, zeroed up to {@link
     *     LowLatencyLayout#headersEnd}
     * @param network null where every heap is mapped here
     * @param ranksOnDevice ranks that share this GPU
     * @param goneRanks address of i32 [R], in host memory that the GPU sees: 1 + the rank because
     *     of which one will not come, or 0; or 0 where nobody knows
     * @param timeouts how long a kernel waits for a peer, unless a plan says it
     */
    public record Place(
            CudaContext context,
            CudaStream stream,
            EpTopology topology,
            List<Long> heaps,
            Network network,
            int ranksOnDevice,
            long goneRanks,
            CallTimeouts timeouts) {

        /** Whether the kernels of one small node are used. */
        boolean isSmallNode() {
            return network == null && LowLatencyLayout.isSmallNode(topology);
        }
    }

    /**
     * How ranks are reached whose heap is not mapped here: by kernels that were built with a
     * network policy. All of them compose in an outbox first, {@link LowLatencyLayout#outboxBytes}
     * that the network reads, {@code outbox} bytes from this rank's heap.
     */
    public sealed interface Network {
        /** Bytes from this rank's heap to its outbox. */
        long outbox();
    }

    /**
     * By queues that the kernels write themselves.
     *
     * @param queues what the policy knows of its queues: {@code Network.queues}
     */
    public record Queues(long queues, long outbox) implements Network {}

    /** By a library in whose memory heap and outbox lie, at the same place on all ranks. */
    public record Library(NetworkLibrary library, long outbox) implements Network {}

    final CudaLowLatencyState state;

    /**
     * Loads the kernels of low-latency mode over mapped memory onto a GPU unless this process has
     * them there. To load is to wait for every kernel of the GPU, so this comes before any that
     * waits for another rank.
     */
    public static void load(CudaContext context) {
        LowLatencyGpu.loadOverMappedMemory(context);
    }

    /** Whether this build has the kernels that write queues themselves. */
    public static boolean haveQueueKernels() {
        return LowLatencyGpu.hasQueueKernels();
    }

    /** Whether this build has the kernels that reach other nodes through NVSHMEM. */
    public static boolean haveNetworkKernels() {
        return LowLatencyGpu.hasLibraryKernels();
    }

    /**
     * Loads the kernels unless this process has them, and allocates the rank's memory except for
     * received rows: while no kernel on this GPU waits for another rank.
     *
     * @param maskTimedOutRanks whether a rank that does not come is masked instead of failing the
     *     call
     */
    public CudaLowLatencyKernels(Place place, LowLatencyLimits limits, boolean maskTimedOutRanks) {
        this.state = new CudaLowLatencyState(place, limits, maskTimedOutRanks);
    }

    @Override
    public Operation<LowLatencyDispatchResult> prepareDispatch(LowLatencyDispatchPlan plan) {
        return new CudaLowLatencyDispatch(state, plan);
    }

    @Override
    public Operation<LowLatencyCombineResult> prepareCombine(LowLatencyCombinePlan plan) {
        return new CudaLowLatencyCombine(state, plan);
    }

    @Override
    public Tensor combineBuffer(LowLatencyHandle handle) {
        return BankHandle.of(handle, state.banks).bank().combineBuffer();
    }

    @Override
    public void quiet() {
        state.quiet();
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
