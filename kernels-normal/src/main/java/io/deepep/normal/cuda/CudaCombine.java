package io.deepep.normal.cuda;

import io.deepep.CombineRequest;
import io.deepep.CombineResult;
import io.deepep.Config;
import io.deepep.DType;
import io.deepep.Event;
import io.deepep.Tensor;
import io.deepep.cuda.CudaOperation;
import io.deepep.cuda.DeviceEvent;
import io.deepep.cuda.KernelStruct.Params;
import io.deepep.cuda.LaunchConfig;
import io.deepep.cuda.StatusStruct;
import io.deepep.normal.NormalConfigs;
import io.deepep.spi.Layout;
import java.lang.foreign.Arena;

/**
 * A combine on a GPU: rows are staged into the heap unless they lie there, then one launch pulls
 * and sums.
 */
final class CudaCombine implements CudaOperation<CombineResult> {
    private static final int SERVICE_THREADS = 64;
    private static final int MIN_CONSUMERS = 192;
    private static final int MAX_CHUNK_BYTES = 16384;
    private static final int SMALL_ROW_BYTES = 2048;
    private static final int MIN_SLOTS = 8;
    private static final int MAX_SLOTS = 64;
    private static final int STAGE_THREADS = 512;
    private static final int VECTOR_BYTES = 16;

    private final CudaNormalState state;
    private final CombineRequest request;
    private final CudaDispatchHandle handle;
    private final boolean inPlace;
    private final Tensor out;
    private final Tensor outWeights;
    private final StatusBlock status;
    private final CallEvent event;
    private final Params params;
    private final LaunchConfig launch;
    private final Params stageParams;
    private final LaunchConfig stageLaunch;
    private int numRows = -1;
    private CombineResult result;

    CudaCombine(CudaNormalState state, CombineRequest request) {
        this.state = state;
        this.request = request;
        this.handle = CudaDispatchHandle.of(request.handle(), state);
        state.checks.combine(request, handle.numResultRows());
        if (request.out() != null && state.heapContains(request.out().address())) {
            throw new IllegalArgumentException(
                    "out lies in the buffer, which peers read during a combine; give memory of your own");
        }
        Config config =
                NormalConfigs.choose(
                        request.config(),
                        state.combineConfig,
                        state.dispatchConfig.covering(state.combineConfig));
        this.inPlace = !handle.expanded() && isReadableInPlace(request.x());
        this.out = request.out() != null ? request.out() : allocate(DType.BF16, handle.hidden());
        this.outWeights =
                request.topkWeights() == null ? null : allocate(DType.F32, handle.numTopk());
        this.event = new CallEvent(state.stream);
        long statusBytes = StatusStruct.BLOCK.numBytes();
        this.status =
                state.status(
                        state.slots.take(this, statusBytes, event.finished()),
                        "combine",
                        handle.numExperts());
        Arena arena = Arena.ofAuto();
        this.params = NormalStructs.COMBINE.allocate(arena);
        this.launch = new LaunchConfig(arena, config.numSms(), MIN_CONSUMERS + SERVICE_THREADS);
        this.stageParams = NormalStructs.STAGE.allocate(arena);
        this.stageLaunch = new LaunchConfig(arena, config.numSms(), STAGE_THREADS);
        fillCombine(config);
        fillStage();
    }

    /** Peers load rows by 16-byte units. */
    private boolean isReadableInPlace(Tensor x) {
        long stride = x.stride(0) * DType.BF16.sizeBytes();
        return state.heapContains(x.address())
                && x.address() % VECTOR_BYTES == 0
                && stride % VECTOR_BYTES == 0;
    }

    private Tensor allocate(DType dtype, int columns) {
        long bytes = (long) dtype.sizeBytes() * handle.numTokens() * columns;
        return state.memory.allocate(bytes).tensor(dtype, handle.numTokens(), columns);
    }

    private void fillCombine(Config config) {
        int rowBytes = handle.hidden() * DType.BF16.sizeBytes();
        int fewest = Math.ceilDiv(rowBytes, MAX_CHUNK_BYTES);
        int unit = rowBytes > SMALL_ROW_BYTES ? (int) Layout.LINE_BYTES : VECTOR_BYTES;
        int chunkBytes = Math.ceilDiv(Math.ceilDiv(rowBytes, fewest), unit) * unit;
        int numSlots = Math.min(MAX_SLOTS, state.kernels.sharedBytes / chunkBytes);
        if (numSlots < MIN_SLOTS) {
            throw new IllegalArgumentException(
                    "hidden="
                            + handle.hidden()
                            + " needs "
                            + MIN_SLOTS * chunkBytes
                            + " bytes of shared memory, "
                            + state.context
                            + " has "
                            + state.kernels.sharedBytes);
        }
        int consumers = Math.max(MIN_CONSUMERS, Math.ceilDiv(chunkBytes / 32, 32) * 32);
        int sharedBytes = numSlots * chunkBytes;
        state.requireResident(
                state.kernels.combine, config.numSms(), SERVICE_THREADS + consumers, sharedBytes);
        launch.block(SERVICE_THREADS + consumers, 1, 1).sharedBytes(sharedBytes);
        state.setGroup(params, status);
        var nvl = state.nvlLayout;
        Tensor x = request.x();
        boolean weights = outWeights != null;
        params.set("x", inPlace ? x.address() - state.heap() : nvl.combineRows().offset())
                .set("x_stride", inPlace ? x.stride(0) * DType.BF16.sizeBytes() : stagedStride())
                .set("weights", nvl.combineWeights().offset())
                .set("weights_stride", handle.numTopk())
                .set("token_rows", handle.tokenRows.address())
                .set("handle_epoch", handle.epoch.address())
                .set("bias", 0, addressOf(request.bias0()))
                .set("bias", 1, addressOf(request.bias1()))
                .set("bias_stride", 0, strideOf(request.bias0()))
                .set("bias_stride", 1, strideOf(request.bias1()))
                .set("out", out.address())
                .set("out_stride", strideOf(out))
                .set("out_weights", weights ? outWeights.address() : 0)
                .setInt("num_tokens", handle.numTokens())
                .setInt("hidden", handle.hidden())
                .setInt("topk", weights ? handle.numTopk() : 0)
                .setInt("chunk_bytes", chunkBytes)
                .setInt("num_chunks", Math.ceilDiv(rowBytes, chunkBytes))
                .setInt("num_slots", numSlots);
    }

    private void fillStage() {
        var nvl = state.nvlLayout;
        boolean weights = outWeights != null;
        stageParams
                .set("x", request.x().address())
                .set("x_stride", request.x().stride(0) * DType.BF16.sizeBytes())
                .set("out", state.heap() + nvl.combineRows().offset())
                .set("out_stride", stagedStride())
                .set("num_rows", handle.numRows.address())
                .set("expanded_rows", handle.expanded() ? handle.expandedRows.address() : 0)
                .set("weights", weights ? request.topkWeights().address() : 0)
                .set("out_weights", state.heap() + nvl.combineWeights().offset())
                .setInt("hidden", handle.hidden())
                .setInt("topk", handle.numTopk());
    }

    private long stagedStride() {
        return CudaNvlLayout.rowStride(DType.BF16, handle.hidden());
    }

    private static long addressOf(Tensor tensor) {
        return tensor == null ? 0 : tensor.address();
    }

    private static long strideOf(Tensor tensor) {
        return tensor == null ? 0 : tensor.stride(0) * DType.BF16.sizeBytes();
    }

    @Override
    public void begin() {
        handle.requireValid();
        if (handle.numResultRows() != numRows) {
            state.checks.combineRows(request, handle.numResultRows());
            numRows = handle.numResultRows();
            // Expanded: the rows peers read are the received ones, at most the region's.
            params.setInt("num_rows", handle.expanded() ? state.nvlLayout.capacity() : numRows);
        }
        if (!state.stream.isCapturing()) {
            event.synchronize();
            status.beginRun();
        }
        stage();
        state.kernels.combine.launch(launch, params.memory(), state.stream);
        event.record();
    }

    private void stage() {
        if (!inPlace) {
            state.kernels.stage.launch(stageLaunch, stageParams.memory(), state.stream);
        } else if (outWeights != null && numRows > 0) {
            Tensor weights = request.topkWeights();
            long target = state.heap() + state.nvlLayout.combineWeights().offset();
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

    @Override
    public boolean isCapturable() {
        return true;
    }

    @Override
    public DeviceEvent event() {
        return event;
    }

    @Override
    public CombineResult result(Event resultEvent, Runnable receiveHook) {
        if (result == null || !result.event().equals(resultEvent)) {
            result = new CombineResult(out, outWeights, resultEvent);
        }
        return result;
    }
}
