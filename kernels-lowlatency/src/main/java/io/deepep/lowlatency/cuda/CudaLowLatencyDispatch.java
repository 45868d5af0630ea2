package io.deepep.lowlatency.cuda;

import io.deepep.Event;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyFormat;
import io.deepep.Tensor;
import io.deepep.cuda.CallEvent;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaOperation;
import io.deepep.cuda.DeviceEvent;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.lowlatency.BankHandle;
import io.deepep.lowlatency.Banks;
import io.deepep.lowlatency.CallEpoch;
import io.deepep.lowlatency.Kind;
import io.deepep.lowlatency.LowLatencyFormats;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.lowlatency.RunsInFlight;
import io.deepep.spi.Layout;
import io.deepep.spi.RecordedFacts;
import io.deepep.spi.RowFormat;
import io.deepep.spi.RunObservation;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/**
 * A dispatch on a GPU: one launch, or with a hook one for each half. Parameters are filled when the
 * plan is prepared, for either bank; a run only launches.
 */
final class CudaLowLatencyDispatch implements CudaOperation<LowLatencyDispatchResult> {

    private final CudaLowLatencyState state;
    private final LowLatencyDispatchPlan plan;
    private final boolean hooked;
    private final int numTokens;
    private final int numTopk;
    private final CallEvent event;
    private final LowLatencyStatus status;
    private final RunsInFlight pending;

    private final RunLaunches launches;
    private final List<BankHandle<CudaBank>> handles = new ArrayList<>();
    private final Tensor[] recvX = new Tensor[Banks.COUNT];
    private final Tensor[] recvScales = new Tensor[Banks.COUNT];
    private final LowLatencyDispatchResult[] results = new LowLatencyDispatchResult[Banks.COUNT];

    /** That the results receive by. */
    private final Runnable[] hooks = new Runnable[Banks.COUNT];

    private int latestBank;

    CudaLowLatencyDispatch(CudaLowLatencyState state, LowLatencyDispatchPlan plan) {
        state.checks.dispatch(plan);
        this.state = state;
        this.plan = plan;
        this.hooked = plan.receiveHook();
        this.pending = new RunsInFlight(state.banks, state.banks::isSent);
        this.numTokens = (int) plan.x().size(0);
        this.numTopk = (int) plan.topkIdx().size(1);
        boolean fp8 = plan.format().isFp8();
        CudaFunction kernel = fp8 ? state.gpu.dispatchFp8 : state.gpu.dispatchBf16;
        this.event = new CallEvent(state.stream);
        this.status = state.newStatus(this, event, Kind.DISPATCH, plan);
        int sharedBytes = (int) (rowSharedOffset() + rows().selectionsOffset());
        requireShared(sharedBytes);
        for (int i = 0; i < Banks.COUNT; i++) {
            CudaBank bank = state.banks.at(i);
            handles.add(newHandle(i));
            recvX[i] = bank.recvX(plan.format());
            recvScales[i] = bank.recvScales(plan.format());
        }
        this.launches =
                new RunLaunches(
                        state,
                        kernel,
                        plan,
                        sharedBytes,
                        event,
                        hooked,
                        this::params,
                        new RunTrace.Source(plan.topkIdx(), plan.waitCostStats(), true));
    }

    private BankHandle<CudaBank> newHandle(int bankIdx) {
        return new BankHandle<>(state.banks, bankIdx, plan.topkWeights() != null);
    }

    private int hidden() {
        return state.limits.hidden();
    }

    private int numLocalExperts() {
        return state.limits.numLocalExperts(state.topology.numRanks());
    }

    private long countsSharedOffset() {
        return Layout.alignToLine((long) Integer.BYTES * state.limits.numExperts());
    }

    /** After what comes from each source, or the counts of all experts: what is more. */
    private long rowSharedOffset() {
        int firstRows = state.place.isSmallNode() ? 0 : numLocalExperts();
        long table = (long) state.topology.numRanks() * (headerWords() + firstRows);
        return countsSharedOffset()
                + Layout.alignToLine(Integer.BYTES * Math.max(state.limits.numExperts(), table));
    }

    private RowFormat rows() {
        return LowLatencyLayout.rows(plan.format(), hidden());
    }

    private int headerWords() {
        return LowLatencyLayout.dispatchWords(state.limits, state.topology.numRanks());
    }

    private void requireShared(int sharedBytes) {
        if (sharedBytes > state.gpu.sharedBytes) {
            throw new IllegalArgumentException(
                    "numExperts=%s with hidden=%s needs %s bytes of shared memory, but %s has %s"
                            .formatted(
                                    state.limits.numExperts(),
                                    hidden(),
                                    sharedBytes,
                                    state.context,
                                    state.gpu.sharedBytes));
        }
    }

    private Params params(Arena arena, int place, int phases) {
        int bankIdx = place % LowLatencyStructs.RUNS;
        Params params = state.gpu.structs.dispatch.allocate(arena);
        state.setGroup(params, status, phases);
        LowLatencyLayout layout = state.layout;
        CudaBank bank = state.banks.at(bankIdx);
        LowLatencyFormat format = plan.format();
        RowFormat rows = rows();
        params.set("flag_offset", layout.dispatchFlags().offset())
                .set("flag_parity_stride", layout.dispatchFlags().stride0())
                .set("flag_rank_stride", layout.dispatchFlags().stride1())
                .set("flag_stride", LowLatencyLayout.dispatchFlagBytes(numTopk))
                .set("row_offset", layout.dispatchRows().offset())
                .set("row_parity_stride", layout.dispatchRows().stride0())
                .set("row_rank_stride", layout.dispatchRows().stride1())
                .set("x", plan.x().address())
                .set("x_stride", plan.x().stride(0) * plan.x().dtype().sizeBytes())
                .set("topk_idx", plan.topkIdx().address())
                .setTensor("topk_weights", plan.topkWeights())
                .set("bank", bank.struct.address())
                .set("selections", bank.selections.address())
                .set("sent_topk_idx", bank.sentTopkIdx.address())
                .set("sent_items", bank.sentItems.address())
                .set("row_selections", bank.rowSelections.address())
                .set("row_tokens", bank.rowTokens.address())
                .set("out_x", recvX[bankIdx].address())
                .setTensor("out_scales", recvScales[bankIdx])
                .set("out_src_info", bank.srcInfo().address())
                .set("out_layout_range", bank.layoutRange().address())
                .set("out_counts", bank.count.address())
                .setTensor("cumulative_stats", plan.cumulativeStats())
                .setTensor("wait_stats", plan.waitCostStats());
        return params.setInt("num_tokens", numTokens)
                .setInt("topk", numTopk)
                .setInt("num_experts", state.limits.numExperts())
                .setInt("experts_per_rank", numLocalExperts())
                .setInt("hidden", hidden())
                .setInt("format", LowLatencyFormats.Code.of(format).value())
                .setInt("max_tokens", state.limits.maxTokens())
                .setInt("max_topk", state.limits.maxTopk())
                .setInt("header_words", headerWords())
                .setInt("row_stride", (int) rows.strideBytes(numTopk))
                .setInt("selections_offset", (int) rows.selectionsOffset())
                .setInt("weights_offset", (int) rows.weightsOffset(numTopk))
                .setInt("counts_shared_offset", (int) countsSharedOffset())
                .setInt("row_shared_offset", (int) rowSharedOffset())
                .setInt("run", place);
    }

    @Override
    public void begin() {
        status.beginRun();
        long dispatch = state.openDispatch(numTokens, numTopk);
        latestBank = CallEpoch.parity(dispatch);
        if (handles.get(latestBank).isExpected()) {
            handles.set(latestBank, newHandle(latestBank));
            results[latestBank] = null;
        }
        handles.get(latestBank).follow();
        if (hooked) {
            pending.add(dispatch);
        } else {
            state.banks.at(latestBank).setReceived();
        }
        launches.begin(latestBank, state.banks.at(latestBank), handles.get(latestBank).id());
    }

    @Override
    public void receive() {
        state.followCapture();
        int bank = CallEpoch.parity(pending.oldest());
        launches.receive(bank, state.banks.at(bank));
        pending.take();
        state.banks.at(bank).setReceived();
    }

    @Override
    public void complete() {
        event.synchronize();
        RuntimeException failure = status.failure();
        if (failure != null) {
            throw failure; // whose run it was, a combine finds out
        }
    }

    /** What arrives is counted in device memory: {@link #observe} has more. */
    @Override
    public void describe(RecordedFacts facts, boolean completed) {
        facts.rows(LowLatencyLayout.rows(plan.format(), hidden()));
        facts.tokens(numTokens, RecordedFacts.UNKNOWN);
    }

    @Override
    public RunObservation observe() {
        RunTrace trace = launches.announce();
        return (facts, completed) -> {
            describe(facts, completed);
            if (trace.isKnown()) {
                int[] sent = trace.sentRows();
                int[] experts = trace.counts();
                facts.tokens(numTokens, Arrays.stream(experts).sum())
                        .peers(sent, trace.receivedRows())
                        .directLinks(sent)
                        .experts(experts)
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
    public LowLatencyDispatchResult result(Event resultEvent, Runnable receiveHook) {
        LowLatencyDispatchResult cached = results[latestBank];
        if (cached == null
                || !cached.event().equals(resultEvent)
                || !Objects.equals(hooks[latestBank], receiveHook)) {
            BankHandle<CudaBank> handle = handles.get(latestBank);
            hooks[latestBank] = receiveHook;
            cached =
                    new LowLatencyDispatchResult(
                            recvX[latestBank],
                            recvScales[latestBank],
                            state.banks.at(latestBank).count,
                            handle,
                            resultEvent,
                            receiveHook == null ? null : handle.guard(receiveHook, pending));
            results[latestBank] = cached;
        }
        return cached;
    }
}
