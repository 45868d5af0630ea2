package io.deepep.normal.cuda;

import io.deepep.Config;
import io.deepep.DType;
import io.deepep.DispatchPlan;
import io.deepep.cuda.LaunchConfig;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.memory.DevicePool;
import io.deepep.normal.cuda.kernels.KernelConstants;
import io.deepep.normal.cuda.kernels.KernelConstants.ExpandMode;
import io.deepep.normal.cuda.kernels.NormalStructs;
import io.deepep.spi.Layout;
import io.deepep.spi.RowFormat;
import java.lang.foreign.Arena;

/** The launch that copies received rows out of the heap, as they are or grouped by local expert. */
final class ExpandLaunch {
    /** Counters of each local expert in shared memory: one for each warp, and its first row. */
    private static final int COUNTER_ROWS = KernelConstants.WARPS + 1;

    private final CudaNormalState state;
    private final CudaDispatchOutputs outputs;
    private final boolean expanded;
    private final Params params;
    private final LaunchConfig launch;

    /** Kept reachable: the kernel's scratch. */
    private final DevicePool.Block blockHist;

    ExpandLaunch(
            CudaNormalState state,
            CudaDispatchHandle handle,
            DispatchPlan plan,
            Config config,
            CudaDispatchOutputs outputs,
            NormalStatus status) {
        this.state = state;
        this.outputs = outputs;
        this.expanded = handle.expanded();
        Arena arena = Arena.ofAuto();
        this.params = NormalStructs.EXPAND.allocate(arena);
        this.launch =
                new LaunchConfig(arena, config.numSms(), KernelConstants.THREADS)
                        .overlapsPrevious();
        int numLocalExperts = handle.expanded() ? handle.numLocalExperts() : 0;
        this.blockHist = state.memory.allocate(4L * config.numSms() * Math.max(numLocalExperts, 1));
        // The group's local state has the kernel's barrier; it has no peers.
        state.setOwnGroup(params, status);
        fillParams(handle, plan, config, numLocalExperts);
    }

    private void fillParams(
            CudaDispatchHandle handle, DispatchPlan plan, Config config, int numLocalExperts) {
        DType dtype = plan.x().dtype();
        RowFormat row = new RowFormat(dtype, handle.hidden());
        int rowStride = (int) row.strideBytes();
        long stagesOffset = Layout.alignToLine(4L * COUNTER_ROWS * numLocalExperts);
        long warps =
                Math.clamp(
                        (state.kernels.sharedBytes - stagesOffset) / rowStride,
                        0,
                        KernelConstants.WARPS);
        if (warps < 1) {
            throw new IllegalArgumentException(
                    "hidden="
                            + handle.hidden()
                            + " with "
                            + numLocalExperts
                            + " local experts does not fit into the shared memory of "
                            + state.context);
        }
        int sharedBytes = (int) (stagesOffset + warps * rowStride);
        state.requireResident(
                state.kernels.expand, config.numSms(), KernelConstants.THREADS, sharedBytes);
        launch.sharedBytes(sharedBytes);
        var nvl = state.nvlLayout;
        params.set("rows", state.nvlAddress() + nvl.recvRows().offset())
                .set("num_rows", handle.numRows.address())
                .set("block_hist", blockHist.address())
                .set("out_x_stride", row.elementBytes())
                .set("out_scales_token_stride", row.numScales())
                .set("out_scales_group_stride", 1)
                .setInt("num_topk", handle.numTopk())
                .setInt("num_local_experts", numLocalExperts)
                .setInt("expert_alignment", handle.expertAlignment())
                .setInt("x_bytes", (int) row.elementBytes())
                .setInt("num_scales", row.numScales())
                .setInt("scales_offset", (int) row.elementBytes())
                .setInt("row_stride", rowStride)
                .setInt("num_copy_warps", (int) warps)
                .setInt("stages_offset", (int) stagesOffset)
                .setInt("mode", ExpandMode.COPY_ROWS.value());
        if (handle.expanded()) {
            boolean weights = plan.topkWeights() != null;
            ExpandMode map = plan.handle() == null ? ExpandMode.BUILD_MAP : ExpandMode.USE_MAP;
            params.set("topk", state.nvlAddress() + nvl.recvTopk().offset())
                    .set("weights", weights ? state.nvlAddress() + nvl.recvWeights().offset() : 0)
                    .set("raw_expert_counts", handle.rawCounts.address())
                    .set("expanded_rows", handle.expandedRows.address())
                    .set("out_expert_offsets", handle.expertOffsets.address())
                    .setInt("mode", map.value());
        }
    }

    /** Enqueues the copy of a result of {@code numRows} rows. */
    void run(int numRows) {
        params.set("out_x", outputs.x().address())
                .setTensor("out_scales", outputs.scales())
                .setTensor("out_weights", expanded ? outputs.topkWeights() : null)
                .setInt("out_limit", numRows);
        state.kernels.expand.launch(launch, params.memory(), state.stream);
    }
}
