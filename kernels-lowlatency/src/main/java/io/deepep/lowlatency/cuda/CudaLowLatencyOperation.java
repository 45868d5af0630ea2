package io.deepep.lowlatency.cuda;

import io.deepep.LowLatencyLimits;
import io.deepep.LowLatencyPlan;
import io.deepep.Tensor;
import io.deepep.cuda.CallEvent;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaOperation;
import io.deepep.cuda.DeviceEvent;
import io.deepep.cuda.LaunchConfig;
import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.kernel.StatusStruct;
import io.deepep.cuda.memory.DevicePool;
import io.deepep.error.CallOrderException;
import io.deepep.lowlatency.Bank;
import io.deepep.lowlatency.Banks;
import io.deepep.lowlatency.CallEpoch;
import io.deepep.lowlatency.Kind;
import io.deepep.lowlatency.LowLatencyErrors;
import io.deepep.lowlatency.RunsInFlight;
import io.deepep.spi.RecordedFacts;
import io.deepep.spi.Region;
import io.deepep.spi.RunObservation;
import java.lang.foreign.Arena;

/**
 * The launches of an operation's runs, by bank, of which there are two: one that does both halves,
 * or with a hook one for each. Parameters are filled when the plan is prepared; a run only
 * launches. Captured runs have parameters of their own. Keeps the traces of runs that are observed;
 * others cost nothing more than their launch.
 */
abstract class CudaLowLatencyOperation<R> implements CudaOperation<R> {
    private static final int SEND = LowLatencyStructs.Phases.SEND.value();
    private static final int RECEIVE = LowLatencyStructs.Phases.RECEIVE.value();
    private static final int BOTH = SEND | RECEIVE;
    private static final int ALLOW_NEXT = LowLatencyStructs.Phases.ALLOW_NEXT.value();
    private static final int PLACES = LowLatencyStructs.RUN_PLACES;

    final CudaLowLatencyKernels kernels;
    final LowLatencyLimits limits;
    final RunsInFlight runs;
    private final Kind kind;
    private final Banks<?> banks;
    private final LowLatencyPlan plan;
    private final boolean hooked;
    private final CallEvent event;
    private final LowLatencyStatus status;
    private CudaFunction kernel;
    private LaunchConfig launch;

    /** By place of a run. */
    private final Params[] sends = new Params[PLACES];

    /** The same; nulls without a hook. */
    private final Params[] receives = new Params[PLACES];

    /** By bank: the place of the latest run. */
    private final int[] places = new int[Banks.COUNT];

    /** By bank: of the latest run; null if it is not observed. */
    private final RunTrace[] observed = new RunTrace[Banks.COUNT];

    /** By place: whether the launch that receives counts waits for observers. */
    private final boolean[] countsWaits = new boolean[PLACES];

    /** Used in turn; null before somebody observes. */
    private final RunTrace[] traces = new RunTrace[Banks.COUNT];

    private RunTrace announced;
    private int numAnnounced;

    /** Not to be run before it is {@linkplain #prepare prepared}. */
    CudaLowLatencyOperation(
            CudaLowLatencyKernels kernels,
            Kind kind,
            Banks<? extends Bank> banks,
            LowLatencyPlan plan) {
        this.kernels = kernels;
        this.limits = kernels.limits;
        this.kind = kind;
        this.banks = banks;
        this.plan = plan;
        this.hooked = plan.receiveHook();
        this.runs = new RunsInFlight(banks);
        this.event = new CallEvent(kernels.stream);
        this.status =
                new LowLatencyStatus(
                        kernels.gpu.slots.take(this, StatusStruct.BLOCK.numBytes(), event),
                        kernels.memory.allocateZeroed(Long.BYTES),
                        kernels.stream,
                        new LowLatencyFaults(
                                new LowLatencyErrors(
                                        kind, kernels.topology.rank(), limits.numExperts()),
                                kernels.place.timeouts().of(plan)));
    }

    /**
     * Checks that a block can have so much shared memory.
     *
     * @param what needs it
     * @param cure what else to do
     */
    final void requireShared(int bytes, String what, String cure) {
        if (bytes > kernels.gpu.sharedBytes) {
            throw new IllegalArgumentException(
                    "%s needs %s bytes of shared memory, but %s has %s; %s"
                            .formatted(
                                    what, bytes, kernels.context, kernels.gpu.sharedBytes, cure));
        }
    }

    /** Fills the parameters of {@code with}; the last that a constructor does. */
    final void prepare(CudaFunction with, int sharedBytes) {
        Arena arena = Arena.ofAuto();
        int numBlocks = kernels.place.numBlocks(plan, with, sharedBytes);
        kernel = with;
        launch =
                new LaunchConfig(arena, numBlocks, LowLatencyStructs.THREADS)
                        .sharedBytes(sharedBytes)
                        .overlapsPrevious();
        for (int place = 0; place < PLACES; place++) {
            // Kernels in a graph allow the next one to begin early.
            int more = isCaptured(place) ? ALLOW_NEXT : 0;
            sends[place] = params(arena, place, hooked ? SEND : BOTH, more);
            receives[place] = hooked ? params(arena, place, RECEIVE, more) : null;
        }
    }

    private Params params(Arena arena, int place, int halves, int more) {
        LowLatencyStructs structs = kernels.gpu.structs;
        KernelStruct struct = kind == Kind.DISPATCH ? structs.dispatch : structs.combine;
        Params params = struct.allocate(arena);
        kernels.setGroup(params, status, halves | more);
        CudaBank bank = bank(place % Banks.COUNT);
        params.set("x", plan.x().address())
                .set("topk_idx", plan.topkIdx().address())
                .set("bank", bank.struct.address())
                .set("selections", bank.selections.address())
                .set("sent_topk_idx", bank.sentTopkIdx.address())
                .set("sent_items", bank.sentItems.address())
                .set("row_selections", bank.rowSelections.address())
                .set("row_tokens", bank.rowTokens.address())
                .setTensor("wait_stats", plan.waitCostStats())
                .setInt("run", place)
                .setInt("num_tokens", (int) plan.topkIdx().size(0))
                .setInt("topk", (int) plan.topkIdx().size(1))
                .setInt("num_experts", limits.numExperts())
                .setInt("experts_per_rank", numLocalExperts())
                .setInt("hidden", plan.hidden())
                .setInt("max_tokens", limits.maxTokens())
                .setInt("max_topk", limits.maxTopk());
        if (halves != BOTH && kind == Kind.COMBINE) {
            DevicePool.Block kept = kernels.keptItems.get(place);
            params.set(halves == SEND ? "kept_items" : "sent_items", kept.address());
        }
        fill(params, place % Banks.COUNT);
        return params;
    }

    /** Fills what is not the same for both kinds, for runs in a bank. */
    abstract void fill(Params params, int index);

    /** Where a region with a cell for each parity and rank begins, and its strides. */
    static Params setCells(Params params, String name, Region region) {
        return params.set(name + "_offset", region.offset())
                .set(name + "_parity_stride", region.stride0())
                .set(name + "_rank_stride", region.stride1());
    }

    /** The bank of the dispatch that a run makes or combines; {@code index}: of the run. */
    abstract CudaBank bank(int index);

    final int numLocalExperts() {
        return limits.numLocalExperts(kernels.topology.numRanks());
    }

    static long rowBytes(Tensor tensor, int dim) {
        return tensor.stride(dim) * tensor.dtype().sizeBytes();
    }

    /** Begins the next call, which is not launched yet; returns its number. */
    final long open() {
        status.beginRun();
        return kernels.open(kind);
    }

    /**
     * The first launch of a call, which is the only one without a hook.
     *
     * @param dispatch {@link io.deepep.lowlatency.BankHandle#id} of what the bank is to hold
     */
    final void launch(long call, long dispatch) {
        int index = CallEpoch.parity(call);
        if (hooked) {
            runs.add(call);
        } else {
            banks.at(index).setReceived();
        }
        RunTrace trace = announced;
        announced = null;
        boolean capturing = kernels.isCapturing();
        int place = capturing ? Banks.COUNT + index : index;
        places[index] = place;
        sends[place].set("dispatch", dispatch);
        if (hooked) {
            receives[place].set("dispatch", dispatch);
        } else {
            prepareReceive(sends[place], place, trace);
        }
        observed[index] = trace;
        kernel.launch(launch, sends[place].memory(), kernels.stream);
        if (trace != null) {
            trace.sent(bank(index));
            if (!hooked) {
                trace.received(bank(index));
            }
        }
        event.record(capturing);
    }

    @Override
    public final void receive() {
        kernels.followCapture();
        int index = CallEpoch.parity(runs.oldest());
        int place = places[index];
        boolean capturing = kernels.isCapturing();
        if (capturing && !isCaptured(place)) {
            throw new CallOrderException(
                    "the call was made before the capture, and a graph would receive it again and again; run its"
                            + " receive hook before the capture begins");
        }
        RunTrace trace = capturing ? null : observed[index]; // a replay would overwrite it
        prepareReceive(receives[place], place, trace);
        kernel.launch(launch, receives[place].memory(), kernels.stream);
        if (trace != null) {
            trace.received(bank(index));
        }
        event.record(capturing);
        runs.take();
        banks.at(index).setReceived();
    }

    private static boolean isCaptured(int place) {
        return place >= Banks.COUNT;
    }

    /** Kernels count waits only where somebody wants to know. */
    private void prepareReceive(Params params, int place, RunTrace trace) {
        if (plan.waitCostStats() == null && (trace != null) != countsWaits[place]) {
            countsWaits[place] = trace != null;
            params.set("wait_stats", trace == null ? 0 : kernels.waitStats.address());
        }
        if (trace != null) {
            trace.beforeReceive();
        }
    }

    /** Whose run it was that failed, a combine finds out. */
    @Override
    public final void complete() {
        event.synchronize();
        kernels.warnOfMasks();
        RuntimeException failure = status.failure();
        if (failure != null) {
            throw failure;
        }
    }

    @Override
    public final RunObservation observe() {
        int turn = numAnnounced++ % traces.length;
        if (traces[turn] == null) {
            traces[turn] = new RunTrace(kernels, this, kind, plan);
        }
        RunTrace trace = traces[turn];
        announced = trace;
        return (facts, completed) -> {
            describe(facts, completed);
            if (trace.isKnown()) {
                describe(facts.waits(trace.waits()), trace);
            }
        };
    }

    /** What is known in device memory alone. */
    abstract void describe(RecordedFacts facts, RunTrace trace);

    @Override
    public final void endsWithStream(boolean may) {
        event.followStream(may);
    }

    @Override
    public final DeviceEvent event() {
        return event;
    }
}
