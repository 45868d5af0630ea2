package io.deepep.normal.cuda;

import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.Config;
import io.deepep.DType;
import io.deepep.Event;
import io.deepep.Tensor;
import io.deepep.cuda.LaunchConfig;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.normal.NormalCall;
import io.deepep.normal.NormalRows;
import io.deepep.normal.RingShape;
import io.deepep.normal.RowSpread;
import io.deepep.normal.cuda.kernels.KernelConstants;
import io.deepep.normal.cuda.kernels.NormalStructs;
import io.deepep.spi.RecordedFacts;
import io.deepep.spi.Region;
import io.deepep.spi.RowFormat;

/**
 * A combine on a GPU: one launch pulls and sums, and brings rows into the heap first if peers
 * cannot read them where they are; see {@link RowsAccess}.
 */
final class CudaCombine extends CudaNormalOperation<CombineResult> {
    /** Saturate the links of an H200. */
    private static final int MAX_STAGE_BLOCKS = 12;

    private final CombinePlan plan;
    private final RowsAccess access;
    private final RowFormat rows;
    private final Tensor out;
    private final Tensor outWeights;
    private final CombineShape shape;
    private final LaunchConfig launch;
    private final Params stageParams;
    private final LaunchConfig stageLaunch;
    private int numRows = -1;
    private CombineResult result;

    CudaCombine(CudaNormalState state, CombinePlan plan) {
        super(state, (CudaDispatchHandle) state.own(plan.handle()), plan, NormalCall.COMBINE);
        this.plan = plan;
        state.checks.combine(plan, handle.numResultRows());
        Config config = state.configs.of(plan);
        this.access = RowsAccess.of(state, handle, config, plan);
        this.out = plan.out() != null ? plan.out() : allocate(DType.BF16, plan.hidden());
        this.outWeights = plan.topkWeights() == null ? null : allocate(DType.F32, handle.numTopk());
        this.rows = NormalRows.ofCombine(plan);
        this.shape = CombineShape.of(state, config, rows);
        this.launch =
                new LaunchConfig(arena, config.numSms(), shape.numThreads())
                        .sharedBytes(shape.sharedBytes())
                        .overlapsPrevious();
        this.stageParams = NormalStructs.STAGE.allocate(arena);
        this.stageLaunch =
                new LaunchConfig(arena, config.numSms(), KernelConstants.MAX_THREADS)
                        .overlapsPrevious();
        fillCombine(config.numSms());
        fillStage();
        if (state.internode != null) {
            fillBetween(RingShape.ofCombine(config, shape.roles()), (int) stagedStride(), 0);
        }
    }

    private Tensor allocate(DType dtype, int columns) {
        return state.memory.tensor(dtype, handle.numTokens(), columns);
    }

    private void fillCombine(int numSms) {
        var nvl = state.nvlLayout;
        Tensor x = plan.x();
        boolean weights = outWeights != null;
        setRows(x, numSms);
        params.set("weights", nvl.combineWeights().offset())
                .set("weights_stride", handle.numTopk())
                .set("source_rows", handle.sourceRows.address())
                .set("token_rows", handle.tokenRows == null ? 0 : handle.tokenRows.address())
                .set("handle_epoch", handle.epoch.address())
                .set("bias", 0, addressOf(plan.bias0()))
                .set("bias", 1, addressOf(plan.bias1()))
                .set("bias_stride", 0, strideOf(plan.bias0()))
                .set("bias_stride", 1, strideOf(plan.bias1()))
                .set("out", out.address())
                .set("out_stride", strideOf(out))
                .set("out_weights", weights ? outWeights.address() : 0)
                .setInt("num_tokens", handle.numTokens())
                .setInt("hidden", plan.hidden())
                .setInt("topk", weights ? handle.numTopk() : 0)
                .setInt("chunk_bytes", shape.chunkBytes())
                .setInt("num_chunks", shape.numChunks())
                .setInt("slot_bytes", shape.slotBytes())
                .setInt("row_bytes", shape.rowBytes())
                .setInt("num_slots", shape.numSlots())
                .setInt("rings_offset", shape.ringsOffset());
    }

    /** What peers pull, and from where it is brought there. */
    private void setRows(Tensor x, int numSms) {
        long stride = strideOf(x);
        long region = state.nvlLayout.combineRows().offset();
        switch (access) {
            case HEAP -> params.set("x", x.address() - state.nvlAddress()).set("x_stride", stride);
            case DIRECT ->
                    params.set("x", x.address()).set("x_stride", stride).setInt("x_absolute", 1);
            case STAGED, CAST -> params.set("x", region).set("x_stride", stagedStride());
            case STAGED_FOR_PEERS ->
                    params.set("x", region)
                            .set("x_stride", stagedStride())
                            .set("stage_x", x.address())
                            .set("stage_x_stride", stride);
            case STREAMED ->
                    params.set("x", region)
                            .set("x_stride", stagedStride())
                            .set("stage_x", x.address())
                            .set("stage_x_stride", stride)
                            .setInt("room", state.nvlLayout.capacity())
                            .setInt("num_stage_blocks", numStageBlocks(numSms));
        }
        Region flags = state.nvlLayout.stagedFlags();
        params.set("staged_flag_offset", flags.offset())
                .set("staged_flag_stride", flags.stride0())
                .setInt(
                        "batch_rows",
                        Math.max(1, KernelConstants.CHUNKS_PER_BATCH / shape.numChunks()));
    }

    /**
     * On an H200, an SM brings 42 GB/s to a peer and sums 65; all rows are summed, one's own are
     * not brought. Rather one block too many than one too few: those that have brought everything
     * sum with the others, who cannot help them. More than saturate the links are of no use.
     */
    private int numStageBlocks(int numSms) {
        int numRanks = state.topology.numRanks();
        int summed = numRanks * 2, brought = (numRanks - 1) * 3;
        int share = Math.ceilDiv(numSms * brought, brought + summed);
        return Math.clamp(share, 1, Math.min(MAX_STAGE_BLOCKS, numSms - 1));
    }

    private void fillStage() {
        var nvl = state.nvlLayout;
        boolean weights = outWeights != null;
        Tensor scales = plan.scales();
        stageParams
                .set("x", plan.x().address())
                .set("x_stride", strideOf(plan.x()))
                .set("scales", addressOf(scales))
                .set("scales_row_stride", scales == null ? 0 : scales.stride(0))
                .set("scales_group_stride", scales == null ? 0 : scales.stride(1))
                .set("out", state.nvlAddress() + nvl.combineRows().offset())
                .set("out_stride", stagedStride())
                .set("num_rows", handle.numRows.address())
                .set("expanded_rows", handle.expanded() ? handle.expandedRows.address() : 0)
                .set("weights", weights ? plan.topkWeights().address() : 0)
                .set("out_weights", state.nvlAddress() + nvl.combineWeights().offset())
                .setInt("hidden", plan.hidden())
                .setInt("topk", handle.numTopk())
                .setInt("num_sources", state.topology.numRanks())
                .setInt("num_ranks", state.topology.numNvlRanks())
                .setInt("rank", state.topology.nvlRank());
    }

    private long stagedStride() {
        return rows.strideBytes();
    }

    private static long addressOf(Tensor tensor) {
        return tensor == null ? 0 : tensor.address();
    }

    private static long strideOf(Tensor tensor) {
        return tensor == null ? 0 : tensor.stride(0) * tensor.dtype().sizeBytes();
    }

    @Override
    public void begin() {
        handle.requireValid();
        state.received.requireCurrent(plan.x(), state.nvlAddress(), handle);
        if (handle.numResultRows() != numRows) {
            state.checks.combineRows(plan, handle.numResultRows());
            numRows = handle.numResultRows();
            // Expanded: the rows peers read are the received ones, at most the region's.
            params.setInt("num_rows", handle.expanded() ? state.nvlLayout.capacity() : numRows);
            stageParams.setInt("x_rows", numRows);
        }
        beginRun();
        stage();
        waits.begin();
        boolean fp8 = rows.dtype() == DType.FP8_E4M3;
        state.calls().combine(fp8).launch(launch, params.memory(), state.stream);
        event.record();
    }

    private void stage() {
        boolean cast = access == RowsAccess.CAST;
        if (cast) {
            state.kernels.cast.launch(stageLaunch, stageParams.memory(), state.stream);
        } else if (access == RowsAccess.STAGED || access == RowsAccess.STAGED_FOR_PEERS) {
            // Stand-ins pull rows of this rank's rail: all are copied.
            boolean some = access == RowsAccess.STAGED_FOR_PEERS && !state.mayHaveStandIns();
            stageParams.set("source_rows", some ? handle.sourceRows.address() : 0);
            state.kernels.stage.launch(stageLaunch, stageParams.memory(), state.stream);
            return;
        }
        if (outWeights != null && numRows > 0 && !(cast && handle.expanded())) {
            Tensor weights = plan.topkWeights();
            long target = state.nvlAddress() + state.nvlLayout.combineWeights().offset();
            state.stream.copy(
                    target, weights.address(), weights.numElements() * DType.F32.sizeBytes());
        }
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
        facts.rows(rows);
        facts.tokens(handle.numTokens(), RecordedFacts.UNKNOWN);
    }

    @Override
    void describe(RowSpread ofDispatch, RecordedFacts facts) {
        ofDispatch.describeCombine(facts, handle.numTokens());
    }

    @Override
    public CombineResult result(Event resultEvent, Runnable receiveHook) {
        if (result == null || !result.event().equals(resultEvent)) {
            result = new CombineResult(out, outWeights, resultEvent);
        }
        return result;
    }
}
