package io.deepep.lowlatency.cuda;

import io.deepep.EpTopology;
import io.deepep.LowLatencyLimits;
import io.deepep.LowLatencyPlan;
import io.deepep.Plan;
import io.deepep.cuda.CallEvent;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.KernelParams;
import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.kernel.NetworkStructs;
import io.deepep.cuda.kernel.StatusStruct;
import io.deepep.cuda.memory.DevicePool;
import io.deepep.error.CallOrderException;
import io.deepep.lowlatency.Banks;
import io.deepep.lowlatency.CallEpoch;
import io.deepep.lowlatency.Kind;
import io.deepep.lowlatency.LowLatencyChecks;
import io.deepep.lowlatency.LowLatencyErrors;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.spi.CallTimeouts;
import io.deepep.spi.Region;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/** What the operations of one rank's low-latency mode share. */
final class CudaLowLatencyState implements AutoCloseable {
    /** Launches that send, that receive, that do both. */
    static final int SEND = LowLatencyStructs.Phases.SEND.value();

    static final int RECEIVE = LowLatencyStructs.Phases.RECEIVE.value();
    static final int BOTH = SEND | RECEIVE;

    /** See {@link LowLatencyStructs.Phases}. */
    static final int ALLOW_NEXT = LowLatencyStructs.Phases.ALLOW_NEXT.value();

    final CudaContext context;
    final CudaStream stream;
    final EpTopology topology;
    final LowLatencyLimits limits;
    final LowLatencyLayout layout;
    final LowLatencyChecks checks;
    final LowLatencyGpu gpu;
    private final CallTimeouts timeouts;
    final DevicePool memory;

    /** i64 [R]: nanoseconds that observed calls waited for each rank. */
    final DevicePool.Block waitStats;

    final CudaLowLatencyKernels.Place place;
    private final boolean maskTimedOutRanks;
    final Banks<CudaBank> banks;
    private final RankMask mask;

    /** {@code RankState} of lowlatency_structs.cuh. */
    final DevicePool.Block rankState;

    /** By place of a run: the bank's {@code sentItems} of a combine that is received by itself. */
    final List<DevicePool.Block> keptItems;

    /** By run number: the combine that is sent but not received, or 0. */
    private final long[] unreceived = new long[Banks.COUNT];

    private long numCombines;

    /** What the latest launch went into, see {@link CudaStream#capture}. */
    private long capture;

    /** By kind and run number: whether the latest run was sent in {@link #capture}. */
    private final boolean[][] captured = new boolean[Kind.values().length][Banks.COUNT];

    CudaLowLatencyState(
            CudaLowLatencyKernels.Place place, LowLatencyLimits limits, boolean maskTimedOutRanks) {
        this.place = place;
        this.context = place.context();
        this.stream = place.stream();
        this.topology = place.topology();
        this.limits = limits;
        this.maskTimedOutRanks = maskTimedOutRanks;
        this.timeouts = place.timeouts();
        this.layout = LowLatencyLayout.of(limits, topology);
        int mostLocalExperts = LowLatencyStructs.of(topology.numRanks()).maxLocalExperts;
        this.checks = new LowLatencyChecks(limits, topology, context.device(), mostLocalExperts);
        this.gpu = LowLatencyGpu.of(place);
        this.memory = new DevicePool(stream);
        int numRanks = topology.numRanks();
        this.banks =
                new Banks<>(
                        new CudaBank(limits, numRanks, memory),
                        new CudaBank(limits, numRanks, memory));
        this.keptItems =
                IntStream.range(0, LowLatencyStructs.RUN_PLACES)
                        .mapToObj(_ -> memory.allocateZeroed(banks.at(0).sentItems.numBytes()))
                        .toList();
        this.waitStats = memory.allocateZeroed((long) Long.BYTES * numRanks);
        this.rankState = memory.allocateZeroed(gpu.structs.rankState.numBytes());
        long maskedAddress = rankState.address() + gpu.structs.rankState.offset("masked");
        this.mask =
                new RankMask(
                        stream,
                        numRanks,
                        maskedAddress,
                        gpu.slots.take(this, (long) Integer.BYTES * numRanks, null));
    }

    /**
     * Where the runs of {@code operation} say what went wrong; {@code end} is that of the latest.
     */
    LowLatencyStatus newStatus(Object operation, CallEvent end, Kind kind, Plan plan) {
        return new LowLatencyStatus(
                gpu.slots.take(operation, StatusStruct.BLOCK.numBytes(), end),
                memory.allocateZeroed(Long.BYTES),
                stream,
                new LowLatencyFaults(
                        new LowLatencyErrors(kind, topology.rank(), limits.numExperts()),
                        timeouts.of(plan)));
    }

    long heap() {
        return place.heaps().get(topology.rank());
    }

    RankMask mask() {
        return mask;
    }

    /** Fills the group at the beginning of {@code params}. */
    void setGroup(Params params, LowLatencyStatus status, int phases) {
        Params p = new Params(gpu.structs.group, params.memory());
        for (int rank = 0; rank < topology.numRanks(); rank++) {
            p.set("heap", rank, place.heaps().get(rank));
        }
        if (place.network() != null) {
            p.set("outbox", place.network().outbox());
            setNetwork(params.memory(), place.network());
        }
        for (Kind kind : Kind.values()) {
            Region headers = layout.headers(kind);
            p.set("header_offset", kind.value(), headers.offset())
                    .set("header_parity_stride", kind.value(), headers.stride0())
                    .set("header_rank_stride", kind.value(), headers.recordBytes());
        }
        p.set("state", rankState.address())
                .set("status", status.deviceAddress())
                .set("ran", status.ranAddress())
                .set("timed_out", mask.deviceAddress())
                .set("gone", place.goneRanks())
                .set("timeout_ns", status.timeouts().nanos())
                .set("start_timeout_ns", status.timeouts().startNanos())
                .set("acks_offset", layout.acks().offset())
                .setInt("rank", topology.rank())
                .setInt("num_ranks", topology.numRanks())
                .setInt("mask_timed_out", maskTimedOutRanks ? 1 : 0)
                .setInt("phases", phases);
    }

    /** To the network policy each rank is a node. */
    private void setNetwork(KernelParams params, CudaLowLatencyKernels.Network network) {
        long at = gpu.structs.group.offset("network");
        KernelStruct struct = NetworkStructs.NETWORK;
        params.setLong(at + struct.offset("base"), heap());
        params.setInt(at + struct.offset("node"), topology.rank());
        params.setInt(at + struct.offset("num_nodes"), topology.numRanks());
        switch (network) {
            case CudaLowLatencyKernels.Queues queues ->
                    params.setLong(at + struct.offset("queues"), queues.queues());
            case CudaLowLatencyKernels.Library over -> {
                int first = over.library().peOf(0);
                params.setInt(at + struct.offset("first_pe"), first);
                params.setInt(at + struct.offset("pe_stride"), over.library().peOf(1) - first);
            }
        }
    }

    /**
     * How many blocks a launch has.
     *
     * @throws IllegalArgumentException if the ranks of this GPU cannot all have that many at once:
     *     they wait for each other
     */
    int numBlocks(LowLatencyPlan plan, CudaFunction kernel, int sharedBytes) {
        int room =
                Math.min(
                        kernel.maxResidentBlocks(LowLatencyStructs.THREADS, sharedBytes),
                        context.cudaDevice().numSms());
        int share = room / place.ranksOnDevice();
        int wanted = plan.numSms();
        if (share < 1 || wanted > share) {
            throw new IllegalArgumentException(
                    ("numSms=%s for %s ranks on %s exceeds the %s blocks that fit there at once; ask for at"
                                    + " most %s, or put fewer ranks on the GPU")
                            .formatted(wanted, place.ranksOnDevice(), context, room, share));
        }
        if (wanted > 0) {
            return wanted;
        }
        return place.isSmallNode()
                ? LowLatencyPlan.defaultNumSms(plan.topkIdx().numElements(), share)
                : share;
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
        for (int run = 0; run < Banks.COUNT; run++) {
            if (captured[Kind.DISPATCH.value()][run]) {
                banks.at(run).forgetSent();
            }
            if (captured[Kind.COMBINE.value()][run]) {
                unreceived[run] = 0;
            }
        }
        for (boolean[] runs : captured) {
            Arrays.fill(runs, false);
        }
    }

    /** Whether the launch at hand goes into a graph. */
    boolean isCapturing() {
        return capture != 0;
    }

    /** Starts the next dispatch; returns its number. */
    long openDispatch(int numTokens, int numTopk) {
        followCapture();
        long dispatch = banks.open(numTokens, numTopk);
        captured[Kind.DISPATCH.value()][CallEpoch.parity(dispatch)] = isCapturing();
        return dispatch;
    }

    /** Starts the next combine; returns its number. */
    long openCombine(boolean hooked) {
        followCapture();
        long combine = numCombines + 1;
        int run = runOf(combine);
        if (unreceived[run] != 0) {
            throw new CallOrderException(
                    ("combine %s has been sent but not received; run its receive hook before the second combine"
                                    + " after it")
                            .formatted(unreceived[run]));
        }
        numCombines = combine;
        unreceived[run] = hooked ? combine : 0;
        captured[Kind.COMBINE.value()][run] = isCapturing();
        return combine;
    }

    /** The run number of a combine. */
    static int runOf(long combine) {
        return (int) (combine % Banks.COUNT);
    }

    /** Whether a combine is sent and not received. */
    boolean isSent(long combine) {
        return unreceived[runOf(combine)] == combine;
    }

    void closeCombine(long combine) {
        unreceived[runOf(combine)] = 0;
    }

    /** What a network still carries may be written over, or would come after a reset. */
    void quiet() {
        if (place.network() instanceof CudaLowLatencyKernels.Library over) {
            over.library().quiet(stream);
        }
        stream.synchronize();
    }

    /** Forgets all calls in flight, now that no rank makes any; masks and lost ranks stay. */
    void reset() {
        stream.fillBytes(heap(), (byte) 0, layout.headersEnd());
        if (place.network() != null) { // counters of what is sent together lie there
            stream.fillBytes(heap() + place.network().outbox(), (byte) 0, layout.headersEnd());
        }
        long kept = gpu.structs.rankState.offset("masked");
        stream.fillBytes(rankState.address() + kept, (byte) 0, rankState.numBytes() - kept);
        mask.write();
        for (int i = 0; i < Banks.COUNT; i++) {
            DevicePool.Block struct = banks.at(i).struct;
            stream.fillBytes(struct.address(), (byte) 0, struct.numBytes());
            unreceived[i] = 0;
        }
        stream.synchronize();
        banks.clean();
        numCombines = 0;
    }

    @Override
    public void close() {
        memory.close();
    }
}
