package io.deepep.normal.cuda;

import io.deepep.Config;
import io.deepep.DType;
import io.deepep.DispatchRequest;
import io.deepep.DispatchResult;
import io.deepep.Event;
import io.deepep.Tensor;
import io.deepep.cuda.CudaEvent;
import io.deepep.cuda.CudaOperation;
import io.deepep.cuda.DeviceEvent;
import io.deepep.cuda.LaunchConfig;
import io.deepep.normal.NormalConfigs;
import io.deepep.normal.cuda.KernelStruct.Params;
import io.deepep.spi.Layout;
import java.lang.foreign.Arena;

/**
 * A dispatch on a GPU: one launch, then one more if rows are copied out or grouped by expert.
 * Parameters are filled when the request is prepared; a run changes none of them, so it can be
 * captured into a graph in worst-case mode.
 */
final class CudaDispatch implements CudaOperation<DispatchResult> {
    private static final int THREADS = 512;
    private static final int MAX_COPY_WARPS = 4;
    private static final int STAGES = 2;

    private final CudaNormalState state;
    private final DispatchRequest request;
    private final boolean cached;
    private final CudaDispatchHandle handle;
    private final StatusBlock status;
    private final CudaEvent finished;
    private final CallEvent event;
    private final DispatchOutputs outputs;
    private final ExpandLaunch expand;
    private final Params params;
    private final LaunchConfig launch;
    private final HostWaiter waiter;

    CudaDispatch(CudaNormalState state, DispatchRequest request) {
        this.state = state;
        this.request = request;
        this.cached = request.handle() != null;
        CudaDispatchHandle given = cached ? CudaDispatchHandle.of(request.handle(), state) : null;
        state.checks.dispatch(request);
        requireNotReceived(request.x());
        Config config =
                NormalConfigs.choose(
                        request.config(),
                        state.dispatchConfig,
                        state.dispatchConfig.covering(state.combineConfig));
        this.handle = cached ? given : newHandle(state, request);
        PinnedSlots.Slot slot = state.slots.take(this);
        this.status =
                new StatusBlock(
                        slot.page(), slot.offset(), state.topology.rank(), state.timeoutNanos);
        this.finished = CudaEvent.create(state.context);
        this.event = new CallEvent(finished, this::check);
        this.outputs = new DispatchOutputs(state, handle, request, slot);
        this.expand = ExpandLaunch.of(state, handle, request, config, outputs);
        Arena arena = Arena.ofAuto();
        this.params = KernelStruct.DISPATCH.allocate(arena);
        this.launch = new LaunchConfig(arena, config.numSms(), THREADS);
        this.waiter = new HostWaiter(state, status);
        fillParams(config);
    }

    private static CudaDispatchHandle newHandle(CudaNormalState state, DispatchRequest request) {
        boolean topk = request.topkIdx() != null;
        return new CudaDispatchHandle(
                state,
                (int) request.x().size(0),
                (int) request.x().size(1),
                topk ? (int) request.topkIdx().size(1) : 0,
                topk ? request.numExperts() : 0,
                request.numWorstTokens(),
                request.expanded(),
                request.expertAlignment());
    }

    /** Peers write the receive region while this rank still reads its tokens. */
    private void requireNotReceived(Tensor x) {
        var rows = state.nvlLayout.recvRows();
        long offset = x.address() - state.heap();
        if (offset >= rows.offset() && offset < rows.end()) {
            throw new IllegalArgumentException(
                    "x is a view of received rows, which a dispatch overwrites; copy it, or receive a copy");
        }
    }

    private void fillParams(Config config) {
        DType dtype = request.x().dtype();
        int hidden = handle.hidden();
        int rowStride = (int) CudaNvlLayout.rowStride(dtype, hidden);
        int numScales = CudaNvlLayout.numScales(dtype, hidden);
        int numExperts = cached ? 0 : handle.numExperts();
        long basesOffset = Layout.alignToLine(4L * numExperts);
        long stagesOffset = basesOffset + Layout.alignToLine(32L * config.numSms());
        long warps =
                Math.min(
                        MAX_COPY_WARPS,
                        (state.kernels.sharedBytes - stagesOffset) / ((long) STAGES * rowStride));
        if (warps < 1) {
            throw new IllegalArgumentException(
                    "hidden="
                            + hidden
                            + " with numExperts="
                            + numExperts
                            + " does not fit into the "
                            + state.kernels.sharedBytes
                            + " bytes of shared memory of "
                            + state.context);
        }
        int sharedBytes = (int) (stagesOffset + warps * STAGES * rowStride);
        state.requireResident(state.kernels.dispatch, config.numSms(), THREADS, sharedBytes);
        launch.sharedBytes(sharedBytes);
        state.setGroup(params, status);
        var nvl = state.nvlLayout;
        params.set("recv_offset", nvl.recvRows().offset())
                .set("recv_src_offset", nvl.recvSrc().offset())
                .set("recv_topk_offset", nvl.recvTopk().offset())
                .set("recv_weights_offset", nvl.recvWeights().offset())
                .set("x", request.x().address())
                .set("x_stride", request.x().stride(0) * dtype.sizeBytes())
                .set("token_rows", handle.tokenRows.address())
                .setInt("num_tokens", handle.numTokens())
                .setInt("num_experts", numExperts)
                .setInt("expert_alignment", request.expertAlignment())
                .setInt("hidden", hidden)
                .setInt("x_bytes", (int) CudaNvlLayout.rowElements(dtype, hidden))
                .setInt("num_scales", numScales)
                .setInt("scales_offset", (int) CudaNvlLayout.rowElements(dtype, hidden))
                .setInt("row_stride", rowStride)
                .setInt("row_limit", outputs.rowLimit())
                .setInt("num_copy_warps", (int) warps)
                .setInt("cached", cached ? 1 : 0)
                .setInt("bases_offset", (int) basesOffset)
                .setInt("stages_offset", (int) stagesOffset);
        if (request.scales() != null) {
            params.set("scales", request.scales().address())
                    .set("scales_token_stride", request.scales().stride(0))
                    .set("scales_group_stride", request.scales().stride(1));
        }
        if (!cached) {
            fillRouting();
        }
    }

    private void fillRouting() {
        params.set("token_order", state.tokenOrder.address())
                .set("expert_hist", state.expertHist.address())
                .set("out_num_rows", handle.numRows.address());
        if (request.topkIdx() == null) {
            params.set("is_token_in_rank", request.layout().isTokenInRank().address());
            return;
        }
        params.setInt("topk", handle.numTopk())
                .set("topk_idx", request.topkIdx().address())
                .set(
                        "topk_weights",
                        request.topkWeights() == null ? 0 : request.topkWeights().address())
                .set("out_raw_expert_counts", handle.rawCounts.address());
        outputs.fill(params);
    }

    @Override
    public void begin() {
        if (cached) {
            handle.requireValid();
        } else {
            handle.invalidate();
        }
        if (!state.stream.isCapturing()) {
            finished.synchronize();
            status.clear();
        }
        state.kernels.dispatch.launch(launch, params.memory(), state.stream);
        if (!cached && handle.numWorstTokens() == 0) {
            // The kernel goes on copying while the host learns how much arrives.
            if (!waiter.awaitReady()) {
                state.stream.record(finished);
                finished.synchronize();
                check();
            }
            handle.validate(
                    status.numRows(),
                    request.expanded() ? status.numExpandedRows() : status.numRows());
            outputs.copyCounts();
        } else if (!cached) {
            handle.validate(handle.numWorstTokens(), handle.numWorstTokens());
        }
        outputs.shape(handle.numResultRows());
        if (expand != null) {
            expand.run(handle.numResultRows());
        }
        state.stream.record(finished);
    }

    @Override
    public void complete() {
        event.synchronize();
    }

    private void check() {
        status.check(cached ? "cached dispatch" : "dispatch", handle.numExperts());
        if (!cached) {
            outputs.copyCounts();
        }
    }

    @Override
    public DeviceEvent event() {
        return event;
    }

    @Override
    public DispatchResult result(Event resultEvent, Runnable receiveHook) {
        return outputs.result(resultEvent);
    }
}
