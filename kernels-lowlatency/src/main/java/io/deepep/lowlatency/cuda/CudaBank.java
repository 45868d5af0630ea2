package io.deepep.lowlatency.cuda;

import io.deepep.DType;
import io.deepep.Fp8E4m3;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.Ue8m0;
import io.deepep.cuda.memory.DevicePool;
import io.deepep.lowlatency.Bank;

/**
 * A bank in a GPU's memory, for the worst case. The rows' is allocated when a dispatch of that
 * format is prepared.
 */
final class CudaBank extends Bank {
    private final LowLatencyLimits limits;
    private final DevicePool memory;
    private final int numLocalExperts;
    private final int numSlots;

    /** {@code Bank} of lowlatency_structs.cuh. */
    final DevicePool.Block struct;

    final DevicePool.Block selections;

    /** I32 [maxTokens * maxTopk]: the indices that were dispatched. */
    final DevicePool.Block sentTopkIdx;

    /** U32 [maxTokens * maxTopk]: where a network brings the results of these. */
    final DevicePool.Block sentItems;

    /** {@code RowSelection} [R][maxTokens][maxTopk] of such a dispatch. */
    final DevicePool.Block rowSelections;

    /** U32 [R][maxTokens] of such a dispatch: the rows' tokens. */
    final DevicePool.Block rowTokens;

    private final Tensor srcInfo;
    private final Tensor layoutRange;
    final Tensor count;
    private final DevicePool.Block scales;
    private DevicePool.Block rows;
    private Tensor combineBuffer;

    CudaBank(LowLatencyLimits limits, int numRanks, DevicePool memory) {
        this.limits = limits;
        this.memory = memory;
        this.numLocalExperts = limits.numLocalExperts(numRanks);
        this.numSlots = numRanks * limits.maxTokens();
        long places = (long) numLocalExperts * numSlots;
        struct = memory.allocateZeroed(LowLatencyStructs.of(numRanks).bank.numBytes());
        // Zeroed: of a source that is lost, rows may be looked at that have never come.
        selections =
                memory.allocateZeroed(
                        LowLatencyStructs.SELECTION.numBytes() * numSlots * limits.maxTopk());
        sentTopkIdx = memory.allocate((long) Integer.BYTES * limits.maxTokens() * limits.maxTopk());
        sentItems = memory.allocateZeroed(sentTopkIdx.numBytes());
        rowSelections =
                memory.allocateZeroed(
                        LowLatencyStructs.ROW_SELECTION.numBytes() * numSlots * limits.maxTopk());
        rowTokens = memory.allocateZeroed((long) Integer.BYTES * numSlots);
        scales = memory.allocate(Float.BYTES * places * groups());
        srcInfo =
                memory.allocate(Integer.BYTES * places)
                        .tensor(DType.I32, numLocalExperts, numSlots);
        layoutRange =
                memory.allocate((long) Long.BYTES * limits.numExperts())
                        .tensor(DType.I64, numLocalExperts, numRanks);
        count =
                memory.allocateZeroed((long) Integer.BYTES * numLocalExperts)
                        .tensor(DType.I32, numLocalExperts);
    }

    private int groups() {
        return limits.hidden() / Fp8E4m3.CHANNELS_PER_SCALE;
    }

    /** The received rows of a format, in memory that the bank's formats share. */
    Tensor recvX(LowLatencyFormat format) {
        DType dtype = format.isFp8() ? DType.FP8_E4M3 : DType.BF16;
        long bytes = (long) dtype.sizeBytes() * limits.hidden() * numLocalExperts * numSlots;
        if (rows == null || rows.numBytes() < bytes) {
            rows = memory.allocate(bytes);
        }
        return rows.tensor(dtype, numLocalExperts, numSlots, limits.hidden());
    }

    /** The received scales, column-major; null for BF16. */
    Tensor recvScales(LowLatencyFormat format) {
        return switch (format) {
            case BF16 -> null;
            case FP8, FP8_POWER_OF_TWO -> columnMajor(DType.F32, groups());
            case FP8_UE8M0 -> columnMajor(DType.I32, Math.ceilDiv(groups(), Ue8m0.PER_INT));
        };
    }

    private Tensor columnMajor(DType dtype, int columns) {
        return Tensor.onDevice(
                srcInfo.device(),
                scales.address(),
                scales.numBytes(),
                dtype,
                new long[] {numLocalExperts, numSlots, columns},
                new long[] {(long) columns * numSlots, 1, numSlots},
                scales);
    }

    /** The zero-copy combine input, made when it is first asked for. */
    Tensor combineBuffer() {
        if (combineBuffer == null) {
            long elements = (long) numLocalExperts * numSlots * limits.hidden();
            combineBuffer =
                    memory.allocate(DType.BF16.sizeBytes() * elements)
                            .tensor(DType.BF16, numLocalExperts, numSlots, limits.hidden());
        }
        return combineBuffer;
    }

    @Override
    protected Tensor srcInfo() {
        return srcInfo;
    }

    @Override
    protected Tensor layoutRange() {
        return layoutRange;
    }
}
