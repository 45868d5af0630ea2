package io.deepep.normal.cuda;

import io.deepep.Config;
import io.deepep.DispatchLayout;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Event;
import io.deepep.Tensor;
import io.deepep.cuda.LaunchConfig;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.memory.PinnedSlots;
import io.deepep.error.RankMismatchException;
import io.deepep.error.RoutingException;
import io.deepep.normal.NormalCall;
import io.deepep.normal.NormalNvlLayout;
import io.deepep.normal.RingShape;
import io.deepep.normal.RowSpread;
import io.deepep.normal.cuda.kernels.KernelConstants;
import io.deepep.spi.RecordedFacts;
import io.deepep.spi.RowFormat;

/**
 * A dispatch on a GPU: one launch, then one more if rows are copied out or grouped by expert.
 * Parameters are filled when the plan is prepared; a run changes none of them, so it can be
 * captured into a graph in worst-case mode.
 */
final class CudaDispatch extends CudaNormalOperation<DispatchResult> {
    private final DispatchPlan plan;
    private final boolean cached;
    private final CudaDispatchOutputs outputs;
    private final ExpandLaunch expand;
    private final DispatchShape shape;
    private final LaunchConfig launch;
    private final CountsWait waiter;

    /** Taken with the first run that is observed. */
    private PinnedSlots.Slot traceSlot;

    /** Of the next run; null if it is not observed. */
    private DispatchTrace announced;

    CudaDispatch(CudaNormalState state, DispatchPlan plan) {
        boolean cached = plan.handle() != null;
        var given = cached ? (CudaDispatchHandle) state.own(plan.handle()) : null;
        state.checks.dispatch(plan);
        super(
                state,
                cached ? given : new CudaDispatchHandle(state, plan),
                plan,
                cached ? NormalCall.CACHED_DISPATCH : NormalCall.DISPATCH);
        this.plan = plan;
        this.cached = cached;
        Config config = state.configs.of(plan);
        this.outputs = new CudaDispatchOutputs(state, handle, plan, slot);
        this.expand =
                outputs.copies()
                        ? new ExpandLaunch(state, handle, plan, config, outputs, status)
                        : null;
        RowFormat row = new RowFormat(plan.x().dtype(), handle.hidden());
        int rowStride = (int) row.strideBytes();
        this.shape = DispatchShape.of(state, config, rowStride, cached ? 0 : handle.numExperts());
        this.launch =
                new LaunchConfig(arena, config.numSms(), KernelConstants.THREADS)
                        .sharedBytes(shape.sharedBytes())
                        .overlapsPrevious();
        this.waiter = new CountsWait(state, status);
        fillParams(row);
        if (state.internode != null) {
            fillBetween(
                    RingShape.ofDispatch(config, shape.numCopyWarps()),
                    state.internode.dispatchSlotBytes(rowStride),
                    cached ? 0 : handle.numTopk());
        }
    }

    private void fillParams(RowFormat row) {
        setLayout(params, state.nvlLayout);
        params.set("x", plan.x().address())
                .set("x_stride", plan.x().stride(0) * row.dtype().sizeBytes())
                .set("token_rows", handle.tokenRows == null ? 0 : handle.tokenRows.address())
                .set("handle_epoch", handle.epoch.address())
                .setInt("num_tokens", handle.numTokens())
                .setInt("num_experts", cached ? 0 : handle.numExperts())
                .setInt("expert_alignment", plan.expertAlignment())
                .setInt("hidden", row.hidden())
                .setInt("x_bytes", (int) row.elementBytes())
                .setInt("num_scales", row.numScales())
                .setInt("scales_offset", (int) row.elementBytes())
                .setInt("row_stride", (int) row.strideBytes())
                .setInt("row_limit", outputs.rowLimit())
                .setInt("num_copy_warps", shape.numCopyWarps())
                .setInt("cached", cached ? 1 : 0)
                .setInt("bases_offset", shape.basesOffset())
                .setInt("stages_offset", shape.stagesOffset());
        if (plan.scales() != null) {
            params.set("scales", plan.scales().address())
                    .set("scales_token_stride", plan.scales().stride(0))
                    .set("scales_group_stride", plan.scales().stride(1));
        }
        if (!cached) {
            fillRouting();
        }
    }

    /** Where peers' rows go. */
    static void setLayout(Params params, NormalNvlLayout layout) {
        params.set("recv_offset", layout.recvRows().offset())
                .set("recv_topk_offset", layout.recvTopk().offset())
                .set("recv_weights_offset", layout.recvWeights().offset());
    }

    private void fillRouting() {
        params.set("token_order", state.tokenOrder.address())
                .set("expert_hist", state.expertHist.address())
                .set("out_num_rows", handle.numRows.address())
                .set("out_source_rows", handle.sourceRows.address());
        if (plan.layout() != null) {
            fillLayout(plan.layout());
        }
        if (plan.topkIdx() == null) {
            return;
        }
        params.setInt("topk", handle.numTopk())
                .set("topk_idx", plan.topkIdx().address())
                .setTensor("topk_weights", plan.topkWeights())
                .set("out_raw_expert_counts", handle.rawCounts.address());
        outputs.fill(params);
    }

    private void fillLayout(DispatchLayout layout) {
        Tensor perExpert = plan.topkIdx() == null ? null : layout.numTokensPerExpert();
        params.set("is_token_in_rank", layout.isTokenInRank().address())
                .set("tokens_per_rank", layout.numTokensPerRank().address())
                .set("tokens_per_expert", perExpert == null ? 0 : perExpert.address());
    }

    /** Whether the host has to wait for counts in the middle. */
    private boolean isExact() {
        return !cached && handle.numWorstTokens() == 0;
    }

    @Override
    public boolean isCapturable() {
        return !isExact();
    }

    @Override
    public void begin() {
        if (cached) {
            handle.requireValid();
        }
        boolean capturing = state.stream.isCapturing();
        beginRun();
        DispatchTrace trace = announced;
        announced = null;
        if (!cached) {
            handle.invalidate();
            if (handle.trace != null && !capturing) {
                handle.trace.rows(); // it is done, and its memory is used again
            }
            handle.trace = trace;
        }
        state.received.overwrite(handle, capturing);
        waits.begin();
        state.calls().dispatch().launch(launch, params.memory(), state.stream);
        try {
            if (trace != null) {
                trace.record();
            }
            if (isExact()) {
                awaitCounts();
            } else if (!cached) {
                handle.validate(handle.numWorstTokens(), handle.numWorstTokens());
            }
            outputs.shape(handle.numResultRows());
            if (expand != null) {
                expand.run(handle.numResultRows());
            }
        } catch (RuntimeException | Error failure) {
            markEnd(failure);
            throw failure;
        }
        event.record();
    }

    /** A failure ends the call, but not what has been launched. */
    private void markEnd(Throwable failure) {
        try {
            event.record();
        } catch (RuntimeException gpuFailed) {
            failure.addSuppressed(gpuFailed);
        }
    }

    /** The kernel goes on copying while the host learns how much arrives. */
    private void awaitCounts() {
        if (!waiter.awaitCounts()) {
            event.record();
            complete();
            throw new IllegalStateException("the dispatch ended without counts or an error");
        }
        int numRows = status.numRows();
        handle.validate(numRows, plan.expanded() ? status.numExpandedRows() : numRows);
        outputs.copyCounts(); // known like the rows, though streams alone wait for the end
    }

    @Override
    public void complete() {
        event.synchronize();
        RuntimeException failure = status.failure();
        if (!cached) {
            if (failure != null) {
                handle.invalidate();
            } else if (!isExact()) {
                // A replay may have succeeded after one that failed.
                handle.validate(handle.numWorstTokens(), handle.numWorstTokens());
                outputs.copyCounts();
            }
        }
        if (failure instanceof RankMismatchException || failure instanceof RoutingException) {
            state.received.keep(handle);
        }
        if (failure != null) {
            throw failure;
        }
    }

    /** How rows spread over the ranks is known in device memory: {@link #observe} has more. */
    @Override
    public void describe(RecordedFacts facts, boolean completed) {
        facts.rows(new RowFormat(plan.x().dtype(), handle.hidden()));
        boolean exact = handle.numWorstTokens() == 0;
        facts.tokens(
                handle.numTokens(),
                exact && handle.isValid() ? handle.numRecvTokens() : RecordedFacts.UNKNOWN);
        if (completed && !cached) {
            outputs.describe(facts);
        }
    }

    /** A cached dispatch moves rows as the one that its handle is of. */
    @Override
    DispatchTrace nextTrace() {
        if (cached) {
            return handle.trace;
        }
        if (traceSlot == null) {
            long bytes = DispatchTrace.slotBytes(state, handle);
            traceSlot = state.slots.take(handle, bytes, event);
        }
        announced = new DispatchTrace(state, handle, event, traceSlot);
        return announced;
    }

    @Override
    void describe(RowSpread rows, RecordedFacts facts) {
        rows.describeDispatch(facts, handle.numTokens());
    }

    @Override
    public DispatchResult result(Event resultEvent, Runnable receiveHook) {
        return outputs.result(resultEvent);
    }
}
