package io.deepep.normal.cuda;

import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.Config;
import io.deepep.DType;
import io.deepep.DispatchLayout;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.EpTopology;
import io.deepep.Event;
import io.deepep.NormalDefaults;
import io.deepep.NormalLimits;
import io.deepep.Tensor;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.GpuShare;
import io.deepep.cuda.LaunchConfig;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.memory.DevicePool;
import io.deepep.cuda.memory.RdmaHeaps;
import io.deepep.error.RoutingException;
import io.deepep.normal.FaultMessages;
import io.deepep.normal.NormalKernels;
import io.deepep.normal.NormalNvlLayout;
import io.deepep.normal.NormalRdmaLayout;
import io.deepep.normal.cuda.kernels.CallKernels;
import io.deepep.normal.cuda.kernels.KernelConstants;
import io.deepep.normal.cuda.kernels.NormalModule;
import io.deepep.normal.cuda.kernels.NormalStructs;
import io.deepep.spi.CallTimeouts;
import io.deepep.spi.Fault;
import io.deepep.spi.FaultCode;
import io.deepep.spi.Operation;
import java.lang.foreign.Arena;
import java.util.List;

/** Normal mode of one rank on a GPU. */
public final class CudaNormalKernels extends NormalKernels implements AutoCloseable {
    /**
     * Where a rank works.
     *
     * @param context its GPU
     * @param stream the stream that all its operations are enqueued on
     * @param topology its place
     * @param heaps of every rank, the address as this GPU sees it; each holds a {@link
     *     NormalNvlLayout}, its cleared part zeroed. Only those of its own node are used
     * @param rdmaHeaps each a zeroed {@link NormalRdmaLayout}; none on one node
     * @param peersReachPlainMemory whether kernels of the ranks of this node can read what {@code
     *     cuMemAlloc} gives this process on its GPU
     * @param share what each rank can use of a GPU; the same on all ranks
     * @param goneRanks address of i32 [R], in host memory that the GPU sees: 1 + the rank because
     *     of which one will not come, or 0
     * @param masksTimedOut whether a rank that does not come is masked, so that a call without it
     *     must fail on all others
     * @param timeouts how long a kernel waits for a peer, unless a plan says it
     */
    public record RankSetup(
            CudaContext context,
            CudaStream stream,
            EpTopology topology,
            List<Long> heaps,
            RdmaHeaps rdmaHeaps,
            boolean peersReachPlainMemory,
            GpuShare share,
            long goneRanks,
            boolean masksTimedOut,
            CallTimeouts timeouts) {}

    private final CudaNormalState state;

    /**
     * Loads the kernels unless this process has them, and allocates the rank's scratch memory:
     * while no kernel on this GPU waits for another rank.
     *
     * @param defaults what is lowered to what fits beside the other ranks of the GPU
     */
    public CudaNormalKernels(
            RankSetup setup,
            NormalLimits limits,
            Config dispatchConfig,
            Config combineConfig,
            NormalDefaults defaults) {
        var state = new CudaNormalState(setup, limits, dispatchConfig, combineConfig, defaults);
        super(state);
        this.state = state;
    }

    /**
     * Loads the kernels of normal mode onto a GPU unless this process has them there. To load is to
     * wait for every kernel of the GPU, so this comes before any that waits for another rank.
     */
    public static void load(CudaContext context) {
        NormalModule.of(context);
    }

    /** Whether this build has the kernels that reach other nodes through NVSHMEM. */
    public static boolean haveNetworkKernels() {
        return CallKernels.areBuiltForLibrary();
    }

    @Override
    public void updateMask(int rank, boolean masked) {
        state.updateMask(rank, masked);
    }

    @Override
    public boolean canMask() {
        return state.canMask();
    }

    @Override
    public int epoch() {
        return (int) state.readLong(state.wordOfState("epoch"));
    }

    @Override
    public void startAfter(int epoch) {
        state.startAfter(epoch);
    }

    @Override
    public DispatchLayout layout(Tensor topkIdx, int numExperts, Event event) {
        state.checks.layout(topkIdx, numExperts);
        int numTokens = (int) topkIdx.size(0);
        int numRanks = state.topology.numRanks();
        int numNodes = state.topology.numRdmaRanks();
        long countBytes = 4L * numExperts + 4L * (numRanks + numNodes);
        if (countBytes > state.sharedBytes()) {
            throw new IllegalArgumentException(
                    "numExperts=%s: counts need %s bytes of shared memory, but %s has %s; use fewer experts"
                            .formatted(numExperts, countBytes, state.context, state.sharedBytes()));
        }
        DevicePool.Block perRank = state.memory.allocateZeroed(4L * numRanks);
        DevicePool.Block perNode = state.memory.allocateZeroed(4L * numNodes);
        DevicePool.Block perExpert = state.memory.allocateZeroed(4L * numExperts);
        DevicePool.Block inRank = state.memory.allocate((long) numTokens * numRanks);
        DevicePool.Block bad = state.memory.allocateZeroed(8);
        try (Arena arena = Arena.ofConfined()) {
            Params p = NormalStructs.LAYOUT.allocate(arena);
            p.set("topk_idx", topkIdx.address())
                    .set("out_tokens_per_rank", perRank.address())
                    .set("out_tokens_per_node", perNode.address())
                    .set("out_tokens_per_expert", perExpert.address())
                    .set("out_is_token_in_rank", inRank.address())
                    .set("out_bad_selection", bad.address())
                    .setInt("num_tokens", numTokens)
                    .setInt("topk", (int) topkIdx.size(1))
                    .setInt("num_experts", numExperts)
                    .setInt("num_nodes", numNodes)
                    .setInt("ranks_per_node", state.topology.numNvlRanks());
            LaunchConfig launch =
                    new LaunchConfig(
                                    arena,
                                    state.configs.dispatch().numSms(),
                                    KernelConstants.THREADS)
                            .sharedBytes((int) countBytes);
            state.kernels.layout.launch(launch, p.memory(), state.stream);
            state.stream.synchronize();
            requireGoodSelections(bad, topkIdx, numExperts);
        }
        return new DispatchLayout(
                perRank.tensor(DType.I32, numRanks),
                numNodes == 1 ? null : perNode.tensor(DType.I32, numNodes),
                perExpert.tensor(DType.I32, numExperts),
                inRank.tensor(DType.BOOL, numTokens, numRanks),
                event);
    }

    private void requireGoodSelections(DevicePool.Block bad, Tensor topkIdx, int numExperts) {
        long key = state.readLong(bad.address());
        if (key != 0) {
            int token = (int) (~key >>> KernelConstants.LAYOUT_KEY_BITS);
            int k = (int) (~key & ((1 << KernelConstants.LAYOUT_KEY_BITS) - 1));
            long expert = state.readLong(topkIdx.address() + 8 * (token * topkIdx.size(1) + k));
            int rank = state.topology.rank();
            Fault fault = Fault.ofRouting(FaultCode.EXPERT_OUT_OF_RANGE, rank, token, k, expert);
            throw new RoutingException(rank, FaultMessages.routing(fault, numExperts));
        }
    }

    @Override
    public Operation<DispatchResult> prepareDispatch(DispatchPlan plan) {
        return new CudaDispatch(state, plan);
    }

    @Override
    public Operation<CombineResult> prepareCombine(CombinePlan plan) {
        return new CudaCombine(state, plan);
    }

    /** Releases the rank's memory, once its stream is done. */
    @Override
    public void close() {
        state.close();
    }
}
