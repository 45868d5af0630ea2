package io.deepep.lowlatency;

import io.deepep.DType;
import io.deepep.Fp8E4m3;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.Ue8m0;
import io.deepep.spi.TensorMemory;

/** Where every second dispatch of a rank puts what it receives, with room for the worst case. */
public abstract class DispatchBank extends Bank {
    private final TensorMemory memory;
    private final int numLocalExperts;
    private final int numSlots;
    private final int hidden;
    private final Tensor srcInfo;
    private final Tensor layoutRange;
    private final Tensor count;
    private final Tensor scales;
    private Tensor rows;
    private Tensor combineBuffer;

    /** A bank in {@code memory}. */
    protected DispatchBank(LowLatencyLimits limits, int numRanks, TensorMemory memory) {
        this.memory = memory;
        this.numLocalExperts = limits.numLocalExperts(numRanks);
        this.numSlots = numRanks * limits.maxTokens();
        this.hidden = limits.hidden();
        srcInfo = memory.tensor(DType.I32, numLocalExperts, numSlots);
        layoutRange = memory.tensor(DType.I64, numLocalExperts, numRanks);
        count = memory.tensor(DType.I32, numLocalExperts);
        scales = memory.tensor(DType.F32, numLocalExperts, groups(hidden), numSlots);
    }

    /** R*maxTokens: rows that there is room for at each expert. */
    public final int numSlots() {
        return numSlots;
    }

    /** I32 [El, R*maxTokens], see {@link io.deepep.LowLatencyHandle#srcInfo}. */
    public final Tensor srcInfo() {
        return srcInfo;
    }

    /** I64 [El, R], see {@link io.deepep.LowLatencyHandle#layoutRange}. */
    public final Tensor layoutRange() {
        return layoutRange;
    }

    /** I32 [El]: rows of each local expert. */
    public final Tensor count() {
        return count;
    }

    /**
     * The received rows of a format and size, [El, R*maxTokens, H], in memory that the bank's
     * formats share: allocated when first asked for, for the largest size of the format.
     */
    final Tensor recvX(LowLatencyFormat format, int rowSize) {
        DType dtype = format.isFp8() ? DType.FP8_E4M3 : DType.BF16;
        long numElements = (long) numLocalExperts * numSlots * hidden;
        if (rows == null || rows.capacityBytes() < numElements * dtype.sizeBytes()) {
            rows = memory.tensor(dtype, numLocalExperts, numSlots, hidden);
        }
        return view(
                rows,
                dtype,
                new long[] {numLocalExperts, numSlots, rowSize},
                new long[] {(long) numSlots * rowSize, rowSize, 1});
    }

    /** The received scales, column-major; null for BF16. */
    final Tensor recvScales(LowLatencyFormat format, int rowSize) {
        int groups = groups(rowSize);
        return switch (format) {
            case BF16 -> null;
            case FP8, FP8_POWER_OF_TWO -> columnMajor(DType.F32, groups);
            case FP8_UE8M0 -> columnMajor(DType.I32, Ue8m0.packedSize(groups));
        };
    }

    private static int groups(int hidden) {
        return hidden / Fp8E4m3.CHANNELS_PER_SCALE;
    }

    private Tensor columnMajor(DType dtype, int columns) {
        return view(
                scales,
                dtype,
                new long[] {numLocalExperts, numSlots, columns},
                new long[] {(long) columns * numSlots, 1, numSlots});
    }

    private static Tensor view(Tensor of, DType dtype, long[] shape, long[] strides) {
        return of.device().isHost()
                ? Tensor.strided(of.segment(), dtype, shape, strides)
                : Tensor.onDevice(
                        of.device(),
                        of.address(),
                        of.capacityBytes(),
                        dtype,
                        shape,
                        strides,
                        of.owner());
    }

    /**
     * The zero-copy combine input, BF16 [El, R*maxTokens, H] with the largest H, made when it is
     * first asked for.
     */
    public final Tensor combineBuffer() {
        if (combineBuffer == null) {
            combineBuffer = memory.tensor(DType.BF16, numLocalExperts, numSlots, hidden);
        }
        return combineBuffer;
    }
}
