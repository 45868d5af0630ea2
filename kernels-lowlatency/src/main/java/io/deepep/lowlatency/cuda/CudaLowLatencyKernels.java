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
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.memory.DevicePool;
import io.deepep.cuda.memory.PinnedSlots;
import io.deepep.lowlatency.Bank;
import io.deepep.lowlatency.BankHandle;
import io.deepep.lowlatency.Banks;
import io.deepep.lowlatency.CallEpoch;
import io.deepep.lowlatency.Kind;
import io.deepep.lowlatency.LowLatencyChecks;
import io.deepep.lowlatency.LowLatencyKernels;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.spi.Operation;
import io.deepep.spi.Region;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/** Low-latency mode of one rank on a GPU. */
public final class CudaLowLatencyKernels implements LowLatencyKernels, AutoCloseable {
    final LowLatencyPlace place;
    final CudaContext context;
    final CudaStream stream;
    final EpTopology topology;
    final LowLatencyLimits limits;
    final LowLatencyLayout layout;
    final LowLatencyGpu gpu;
    final DevicePool memory;
    private final LowLatencyChecks checks;
    private final boolean maskTimedOutRanks;
    private final RankMask mask;

    /** i64 [R]: nanoseconds that observed calls waited for each rank. */
    final DevicePool.Block waitStats;

    /** {@code RankState} of lowlatency_structs.cuh. */
    final DevicePool.Block rankState;

    /** By place of a run: the bank's {@code sentItems} of a combine that is received by itself. */
    final List<DevicePool.Block> keptItems;

    final Banks<CudaBank> dispatches;

    /** What a combine needs lies with its dispatch. */
    final Banks<Bank> combines = new Banks<>(Kind.COMBINE, new Bank(), new Bank());

    /** What the latest launch went into, see {@link CudaStream#capture}. */
    private long capture;

    /** By kind and bank: whether its latest call was sent in {@link #capture}. */
    private final boolean[][] captured = new boolean[Kind.values().length][Banks.COUNT];

    /**
     * Loads the kernels unless this process has them, and allocates the rank's memory except for
     * received rows: while no kernel on this GPU waits for another rank.
     *
     * @param maskTimedOutRanks whether a rank that does not come is masked instead of failing the
     *     call
     */
    public CudaLowLatencyKernels(
            LowLatencyPlace place, LowLatencyLimits limits, boolean maskTimedOutRanks) {
        this.place = place;
        this.context = place.context();
        this.stream = place.stream();
        this.topology = place.topology();
        this.limits = limits;
        this.maskTimedOutRanks = maskTimedOutRanks;
        this.layout = LowLatencyLayout.of(limits, topology);
        int numRanks = topology.numRanks();
        int mostLocalExperts = LowLatencyStructs.of(numRanks).maxLocalExperts;
        this.checks = new LowLatencyChecks(limits, topology, context.device(), mostLocalExperts);
        this.gpu = LowLatencyGpu.of(place);
        this.memory = new DevicePool(stream);
        try {
            this.dispatches =
                    new Banks<>(
                            Kind.DISPATCH,
                            new CudaBank(limits, numRanks, memory, stream),
                            new CudaBank(limits, numRanks, memory, stream));
            this.keptItems =
                    IntStream.range(0, LowLatencyStructs.RUN_PLACES)
                            .mapToObj(
                                    _ ->
                                            memory.allocateZeroed(
                                                    dispatches.at(0).sentItems.numBytes()))
                            .toList();
            this.waitStats = memory.allocateZeroed((long) Long.BYTES * numRanks);
            this.rankState = memory.allocateZeroed(gpu.structs.rankState.numBytes());
            long maskBytes = (long) Integer.BYTES * numRanks;
            PinnedSlots.Slot masks = gpu.slots.take(this, maskBytes, null);
            this.mask =
                    new RankMask(
                            stream,
                            topology.rank(),
                            rankState.address() + gpu.structs.rankState.offset("masked"),
                            masks.memory().asSlice(0, maskBytes),
                            masks.deviceAddress());
        } catch (RuntimeException | Error failure) {
            memory.close();
            throw failure;
        }
    }

    @Override
    public Operation<LowLatencyDispatchResult> prepareDispatch(LowLatencyDispatchPlan plan) {
        checks.dispatch(plan);
        return new CudaLowLatencyDispatch(this, plan);
    }

    @Override
    public Operation<LowLatencyCombineResult> prepareCombine(LowLatencyCombinePlan plan) {
        BankHandle<CudaBank> handle = BankHandle.of(plan.handle(), dispatches);
        CudaBank bank = handle.bank();
        checks.combine(plan, handle.weighted());
        return new CudaLowLatencyCombine(this, plan, handle, bank);
    }

    @Override
    public Tensor combineBuffer(LowLatencyHandle handle) {
        return BankHandle.of(handle, dispatches).bank().combineBuffer();
    }

    /** Fills the group at the beginning of {@code params}. */
    void setGroup(Params params, LowLatencyStatus status, int phases) {
        Params group = new Params(gpu.structs.group, params.memory());
        place.fill(group);
        status.fill(group);
        for (Kind kind : Kind.values()) {
            Region headers = layout.headers(kind);
            group.set("header_offset", kind.value(), headers.offset())
                    .set("header_parity_stride", kind.value(), headers.stride0())
                    .set("header_rank_stride", kind.value(), headers.recordBytes());
        }
        group.set("state", rankState.address())
                .set("timed_out", mask.deviceAddress())
                .set("acks_offset", layout.acks().offset())
                .setInt("mask_timed_out", maskTimedOutRanks ? 1 : 0)
                .setInt("phases", phases);
    }

    /** Tells of the ranks that kernels have masked, once their calls are over. */
    void warnOfMasks() {
        if (maskTimedOutRanks) {
            mask.warn();
        }
    }

    private Banks<?> banks(Kind kind) {
        return kind == Kind.DISPATCH ? dispatches : combines;
    }

    /**
     * Before each launch: notes whether it goes into a graph. A run that another capture has sent
     * and not received never will be, as its halves belong in the same graph. It is forgotten, so
     * that after a capture that failed an engine can make the same calls, as if that had not been.
     */
    void followCapture() {
        long now = stream.capture();
        if (now == capture) {
            return;
        }
        capture = now;
        for (Kind kind : Kind.values()) {
            boolean[] runs = captured[kind.value()];
            for (int i = 0; i < Banks.COUNT; i++) {
                if (runs[i]) {
                    banks(kind).at(i).forgetSent();
                }
            }
            Arrays.fill(runs, false);
        }
    }

    /** Whether the launch at hand goes into a graph. */
    boolean isCapturing() {
        return capture != 0;
    }

    /** Begins the next call of a kind; returns its number. */
    long open(Kind kind) {
        followCapture();
        long call = banks(kind).open();
        captured[kind.value()][CallEpoch.parity(call)] = isCapturing();
        return call;
    }

    /** What a network still carries may be written over, or would come after a reset. */
    @Override
    public void quiet() {
        if (place.network() instanceof LowLatencyPlace.Library over) {
            over.library().quiet(stream);
        }
        stream.synchronize();
    }

    /** Masks and lost ranks stay. */
    @Override
    public void reset() {
        stream.fillBytes(place.heap(), (byte) 0, layout.headersEnd());
        if (place.network() != null) { // counters of what is sent together lie there
            long outbox = place.heap() + place.network().outbox();
            stream.fillBytes(outbox, (byte) 0, layout.headersEnd());
        }
        long kept = gpu.structs.rankState.offset("masked");
        stream.fillBytes(rankState.address() + kept, (byte) 0, rankState.numBytes() - kept);
        mask.write();
        for (int i = 0; i < Banks.COUNT; i++) {
            DevicePool.Block struct = dispatches.at(i).struct;
            stream.fillBytes(struct.address(), (byte) 0, struct.numBytes());
        }
        stream.synchronize();
        dispatches.clean();
        combines.clean();
    }

    @Override
    public void updateMask(int rank, boolean masked) {
        mask.update(rank, masked);
    }

    @Override
    public int[] queryMask() {
        return mask.query();
    }

    /** Releases the rank's memory, once its stream is done. */
    @Override
    public void close() {
        memory.close();
    }
}
