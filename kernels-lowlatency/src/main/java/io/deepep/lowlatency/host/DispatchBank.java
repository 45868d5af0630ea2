package io.deepep.lowlatency.host;

import io.deepep.DType;
import io.deepep.Fp8E4m3;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.Ue8m0;
import io.deepep.host.HostMemory;
import io.deepep.lowlatency.Bank;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * A bank in the host's memory, for the worst case; it costs only the pages that are used. BF16 and
 * FP8 rows share it.
 */
final class DispatchBank extends Bank {
    private final Arena arena;
    final int numSlots;
    final int numLocalExperts;
    final int hidden;
    final MemorySegment rows;
    final MemorySegment scales;
    final MemorySegment srcInfo;

    /**
     * Which selection of its token a row is; beside srcInfo, because combine returns rows by
     * (token, selection).
     */
    final MemorySegment srcSelection;

    /** I64 [T,K]: what this rank dispatched. */
    final MemorySegment sentTopkIdx;

    /** Of a dispatch that was given weights. */
    final WeightedRows weightedRows;

    boolean weighted;

    final MemorySegment layoutRange;
    final MemorySegment counts;
    private final Tensor srcInfoTensor;
    private final Tensor layoutRangeTensor;
    final Tensor countTensor;
    private final Tensor bf16;
    private final Tensor fp8;
    private final Tensor floatScales;
    private final Tensor packedScales;
    private Tensor combineBuffer;

    /** The ranks that this rank's tokens were sent to: all that were not masked. */
    final boolean[] reached;

    /** The ranks whose tokens were received. */
    final boolean[] present;

    /** Rows that went to each rank, and that came from each. */
    final int[] sentRows;

    final int[] receivedRows;

    /** The combine that comes next after the bank's dispatch was begun. */
    long nextCombine;

    LowLatencyFormat format = LowLatencyFormat.BF16;

    DispatchBank(Arena arena, LowLatencyLimits limits, int numRanks) {
        this.arena = arena;
        this.numLocalExperts = limits.numLocalExperts(numRanks);
        this.numSlots = numRanks * limits.maxTokens();
        this.hidden = limits.hidden();
        this.reached = new boolean[numRanks];
        this.present = new boolean[numRanks];
        this.sentRows = new int[numRanks];
        this.receivedRows = new int[numRanks];
        int groups = hidden / Fp8E4m3.CHANNELS_PER_SCALE;
        int packed = (groups + Ue8m0.PER_INT - 1) / Ue8m0.PER_INT;
        long places = (long) numLocalExperts * numSlots;
        rows = HostMemory.allocate(arena, places * hidden * DType.BF16.sizeBytes());
        scales = HostMemory.allocate(arena, places * groups * DType.F32.sizeBytes());
        srcInfo = HostMemory.allocate(arena, places * DType.I32.sizeBytes());
        srcSelection = HostMemory.allocate(arena, places * DType.I32.sizeBytes());
        sentTopkIdx =
                HostMemory.allocate(
                        arena, (long) Long.BYTES * limits.maxTokens() * limits.maxTopk());
        weightedRows = new WeightedRows(arena, limits, numRanks);
        layoutRange =
                HostMemory.allocate(
                        arena, (long) numLocalExperts * numRanks * DType.I64.sizeBytes());
        counts = HostMemory.allocate(arena, (long) numLocalExperts * DType.I32.sizeBytes());
        bf16 = Tensor.of(rows, DType.BF16, numLocalExperts, numSlots, hidden);
        fp8 = Tensor.of(rows, DType.FP8_E4M3, numLocalExperts, numSlots, hidden);
        floatScales = columnMajor(DType.F32, groups);
        packedScales = columnMajor(DType.I32, packed);
        srcInfoTensor = Tensor.of(srcInfo, DType.I32, numLocalExperts, numSlots);
        layoutRangeTensor = Tensor.of(layoutRange, DType.I64, numLocalExperts, numRanks);
        countTensor = Tensor.of(counts, DType.I32, numLocalExperts);
    }

    private Tensor columnMajor(DType dtype, int columns) {
        return Tensor.strided(
                scales,
                dtype,
                new long[] {numLocalExperts, numSlots, columns},
                new long[] {(long) columns * numSlots, 1, numSlots});
    }

    Tensor recvX() {
        return format.isFp8() ? fp8 : bf16;
    }

    Tensor recvScales() {
        return switch (format) {
            case BF16 -> null;
            case FP8, FP8_POWER_OF_TWO -> floatScales;
            case FP8_UE8M0 -> packedScales;
        };
    }

    /** The zero-copy combine input, made when it is first asked for. */
    Tensor combineBuffer() {
        if (combineBuffer == null) {
            long numBytes = (long) numLocalExperts * numSlots * hidden * DType.BF16.sizeBytes();
            combineBuffer =
                    Tensor.of(
                            HostMemory.allocate(arena, numBytes),
                            DType.BF16,
                            numLocalExperts,
                            numSlots,
                            hidden);
        }
        return combineBuffer;
    }

    @Override
    protected Tensor srcInfo() {
        return srcInfoTensor;
    }

    @Override
    protected Tensor layoutRange() {
        return layoutRangeTensor;
    }
}
