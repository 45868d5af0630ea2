package io.deepep.lowlatency.cuda;

import io.deepep.DType;
import io.deepep.Event;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.Tensor;
import io.deepep.cuda.CallEvent;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaOperation;
import io.deepep.cuda.DeviceEvent;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.lowlatency.BankHandle;
import io.deepep.lowlatency.Kind;
import io.deepep.lowlatency.LowLatencyFormats;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.lowlatency.RunsInFlight;
import io.deepep.spi.RecordedFacts;
import io.deepep.spi.RunObservation;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.Objects;

/**
 * A combine on a GPU: one launch, or with a hook one for each half. Rows are sent from where they
 * lie, so every combine is one without a copy.
 */
final class CudaLowLatencyCombine implements CudaOperation<LowLatencyCombineResult> {
    private final CudaLowLatencyState state;
    private final LowLatencyCombinePlan plan;
    private final BankHandle<CudaBank> handle;
    private final CudaBank bank;
    private final boolean hooked;
    private final CallEvent event;
    private final LowLatencyStatus status;
    private final RunsInFlight pending;
    private final Tensor out;
    private final RunLaunches launches;
    private LowLatencyCombineResult result;

    CudaLowLatencyCombine(CudaLowLatencyState state, LowLatencyCombinePlan plan) {
        this.handle = BankHandle.of(plan.handle(), state.banks);
        this.bank = handle.bank();
        state.checks.combine(plan, handle.weighted());
        this.state = state;
        this.plan = plan;
        this.hooked = plan.receiveHook();
        this.pending = new RunsInFlight(state.banks, state::isSent);
        CudaFunction kernel = state.gpu.combine(plan);
        this.event = new CallEvent(state.stream);
        this.status = state.newStatus(this, event, Kind.COMBINE, plan);
        this.out = plan.out() != null ? plan.out() : allocate();
        this.launches =
                new RunLaunches(
                        state,
                        kernel,
                        plan,
                        LowLatencyStructs.combineSharedBytes(plan),
                        event,
                        hooked,
                        this::params,
                        new RunTrace.Source(plan.topkIdx(), plan.waitCostStats(), false));
    }

    private Tensor allocate() {
        long hidden = state.limits.hidden();
        return state.memory
                .allocate(DType.BF16.sizeBytes() * hidden * handle.numTokens())
                .tensor(DType.BF16, handle.numTokens(), hidden);
    }

    private Params params(Arena arena, int place, int phases) {
        Params params = state.gpu.structs.combine.allocate(arena);
        state.setGroup(params, status, phases);
        LowLatencyLayout layout = state.layout;
        Tensor x = plan.x();
        long elementBytes = DType.BF16.sizeBytes();
        long sent = bank.sentItems.address();
        long kept = state.keptItems.get(place).address();
        int halves = phases & CudaLowLatencyState.BOTH;
        params.set("flag_offset", layout.combineFlags().offset())
                .set("flag_parity_stride", layout.combineFlags().stride0())
                .set("flag_token_stride", layout.combineFlags().stride1())
                .set("flag_part_stride", layout.combineFlags().recordBytes())
                .set("row_offset", layout.combineRows().offset())
                .set("row_parity_stride", layout.combineRows().stride0())
                .set("row_rank_stride", layout.combineRows().stride1())
                .set(
                        "row_stride",
                        LowLatencyLayout.combineRowStride(plan.format(), state.limits.hidden()))
                .set("pack_offset", layout.combinePacks().offset())
                .set("pack_parity_stride", layout.combinePacks().stride0())
                .set("pack_rank_stride", layout.combinePacks().stride1())
                .set("pack_stride", layout.combinePacks().recordBytes())
                .set("x", x.address())
                .set("x_expert_stride", x.stride(0) * elementBytes)
                .set("x_row_stride", x.stride(1) * elementBytes)
                .set("bank", bank.struct.address())
                .set("selections", bank.selections.address())
                .set("sent_topk_idx", bank.sentTopkIdx.address())
                .set("sent_items", halves == CudaLowLatencyState.RECEIVE ? kept : sent)
                .set("kept_items", halves == CudaLowLatencyState.SEND ? kept : 0)
                .set("row_selections", bank.rowSelections.address())
                .set("row_tokens", bank.rowTokens.address())
                .set("topk_idx", plan.topkIdx().address())
                .setTensor("topk_weights", plan.topkWeights())
                .set("out", out.address())
                .set("out_stride", out.stride(0) * elementBytes)
                .setTensor("wait_stats", plan.waitCostStats());
        return params.setInt("run", place)
                .setInt("num_tokens", handle.numTokens())
                .setInt("topk", handle.numTopk())
                .setInt("num_experts", state.limits.numExperts())
                .setInt("experts_per_rank", state.limits.numLocalExperts(state.topology.numRanks()))
                .setInt("hidden", state.limits.hidden())
                .setInt("row_format", LowLatencyFormats.combineCode(plan))
                .setInt("max_tokens", state.limits.maxTokens())
                .setInt("max_topk", state.limits.maxTopk());
    }

    @Override
    public void begin() {
        handle.received();
        status.beginRun();
        long combine = state.openCombine(hooked);
        handle.setCombined();
        if (hooked) {
            pending.add(combine);
        }
        launches.begin(CudaLowLatencyState.runOf(combine), bank, handle.id());
    }

    @Override
    public void receive() {
        state.followCapture();
        long combine = pending.oldest();
        launches.receive(CudaLowLatencyState.runOf(combine), bank);
        pending.take();
        state.closeCombine(combine);
    }

    @Override
    public void complete() {
        event.synchronize();
        RuntimeException failure = status.failure();
        if (failure != null) {
            throw failure;
        }
    }

    /** Where rows come from is known in device memory: {@link #observe} has more. */
    @Override
    public void describe(RecordedFacts facts, boolean completed) {
        LowLatencyFormats.describe(facts, plan.format(), state.limits.hidden());
        facts.tokens(handle.numTokens(), RecordedFacts.UNKNOWN);
    }

    /**
     * Rows home count every selection, or pre-reduced every rank that a token selects, those of
     * masked ranks too.
     */
    @Override
    public RunObservation observe() {
        RunTrace trace = launches.announce();
        return (facts, completed) -> {
            describe(facts, completed);
            if (trace.isKnown()) {
                boolean reduced = plan.isPreReduced();
                int[] home = reduced ? trace.ownRows() : trace.ownSelections();
                int[] sent = reduced ? trace.receivedRows() : trace.receivedSelections();
                facts.tokens(plan.topkIdx().size(0), Arrays.stream(home).sum())
                        .peers(sent, home)
                        .directLinks(home)
                        .waits(trace.waits());
            }
        };
    }

    @Override
    public void endsWithStream(boolean may) {
        event.followStream(may);
    }

    @Override
    public DeviceEvent event() {
        return event;
    }

    @Override
    public LowLatencyCombineResult result(Event resultEvent, Runnable receiveHook) {
        if (result == null
                || !result.event().equals(resultEvent)
                || !Objects.equals(result.receiveHook(), receiveHook)) {
            result = new LowLatencyCombineResult(out, resultEvent, receiveHook);
        }
        return result;
    }
}
