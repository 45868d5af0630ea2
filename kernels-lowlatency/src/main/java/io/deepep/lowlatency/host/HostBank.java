package io.deepep.lowlatency.host;

import io.deepep.DType;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.host.HostMemory;
import io.deepep.lowlatency.DispatchBank;
import io.deepep.spi.RowFormat;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** A bank in the host's memory; it costs only the pages that are used. */
final class HostBank extends DispatchBank {
    /**
     * I32 [El, R*maxTokens]: which selection of its token a row is; beside srcInfo, because combine
     * returns rows by (token, selection).
     */
    final MemorySegment srcSelection;

    /** I64 [T,K]: what this rank dispatched. */
    final MemorySegment sentTopkIdx;

    /** Of a dispatch that was given weights. */
    final WeightedRows weightedRows;

    /** The ranks that this rank's tokens were sent to: all that were not masked. */
    final boolean[] reached;

    /** The ranks whose tokens were received. */
    final boolean[] present;

    /** Rows that went to each rank, and that came from each. */
    final int[] sentRows;

    final int[] receivedRows;

    /** The combine that comes next after the bank's dispatch was begun. */
    long nextCombine;

    /** Of its dispatch; how rows travel, and where they and their scales go. */
    LowLatencyDispatchPlan plan;

    RowFormat rowFormat;
    Tensor recvX;
    Tensor recvScales;

    HostBank(Arena arena, LowLatencyLimits limits, int numRanks) {
        super(limits, numRanks, HostMemory.tensors(arena));
        this.reached = new boolean[numRanks];
        this.present = new boolean[numRanks];
        this.sentRows = new int[numRanks];
        this.receivedRows = new int[numRanks];
        srcSelection = HostMemory.allocate(arena, srcInfo().capacityBytes());
        long numSelections = (long) limits.maxTokens() * limits.maxTopk();
        sentTopkIdx = HostMemory.allocate(arena, DType.I64.sizeBytes() * numSelections);
        weightedRows = new WeightedRows(arena, limits, numRanks);
    }

    int numTopk() {
        return (int) plan.topkIdx().size(1);
    }

    boolean isWeighted() {
        return plan.topkWeights() != null;
    }
}
