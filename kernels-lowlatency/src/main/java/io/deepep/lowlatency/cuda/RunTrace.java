package io.deepep.lowlatency.cuda;

import io.deepep.LowLatencyPlan;
import io.deepep.Tensor;
import io.deepep.cuda.CudaEvent;
import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.cuda.memory.PinnedSlots;
import io.deepep.lowlatency.Kind;
import io.deepep.lowlatency.Selections;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * What observers learn of one run from device memory: copies into mapped host memory that are
 * enqueued around its launches, so that they are of this run whatever comes later. An operation has
 * two, because two of its runs may be under way. Made with the first run that is observed.
 *
 * <pre>
 *   Bank                of the dispatch, after the launch that receives it; combine: that sends
 *   i32 counts[El]      of a dispatch, after the same launch
 *   i64 before[R]       wait statistics before the launch that receives, in nanoseconds
 *   i64 after[R]        and after it
 *   i64 topk[T][K]      after the launch that sends; later an engine may overwrite them
 * </pre>
 */
final class RunTrace {
    private static final long VECTOR_BYTES = 16;

    private final CudaLowLatencyKernels kernels;
    private final boolean ofDispatch;

    /** Of a {@code Bank}. */
    private final KernelStruct bankStruct;

    private final Tensor topkIdx;

    /** Device address of the i64 [R] that launches add their waits to. */
    private final long waitStats;

    /** Recorded behind the last copy of a run. */
    private final CudaEvent end;

    private final PinnedSlots.Slot slot;
    private final MemorySegment memory;
    private final long countsOffset;
    private final long beforeOffset;
    private final long afterOffset;
    private final long topkOffset;
    private final Selections selections;
    private boolean received;

    /**
     * A trace of runs of one operation, while {@code operation} is reachable.
     *
     * @param kind a dispatch fills its bank, a combine reads it
     */
    RunTrace(CudaLowLatencyKernels kernels, Object operation, Kind kind, LowLatencyPlan plan) {
        this.kernels = kernels;
        this.ofDispatch = kind == Kind.DISPATCH;
        this.bankStruct = kernels.gpu.structs.bank;
        this.end = CudaEvent.create(kernels.context);
        this.topkIdx = plan.topkIdx();
        Tensor given = plan.waitCostStats();
        this.waitStats = given == null ? kernels.waitStats.address() : given.address();
        this.countsOffset = alignToVector(bankStruct.numBytes());
        this.beforeOffset = countsOffset + alignToVector(4L * numLocalExperts());
        this.afterOffset = beforeOffset + 8L * numRanks();
        this.topkOffset = afterOffset + 8L * numRanks();
        long numBytes = topkOffset + 8 * topkIdx.numElements();
        this.slot = kernels.gpu.slots.take(operation, numBytes, end);
        this.memory = slot.memory().asSlice(0, numBytes);
        this.selections =
                Selections.of(topkIdx, memory.asSlice(topkOffset), kernels.limits, numRanks());
    }

    private static long alignToVector(long bytes) {
        return Math.ceilDiv(bytes, VECTOR_BYTES) * VECTOR_BYTES;
    }

    private int numRanks() {
        return kernels.topology.numRanks();
    }

    private int numLocalExperts() {
        return kernels.limits.numLocalExperts(numRanks());
    }

    /** Behind the launch that sends. */
    void sent(CudaBank bank) {
        received = false;
        if (!ofDispatch) {
            copy(0, bank.struct.address(), bankStruct.numBytes());
        }
        copy(topkOffset, topkIdx.address(), 8 * topkIdx.numElements());
    }

    /** Before the launch that receives. */
    void beforeReceive() {
        copy(beforeOffset, waitStats, 8L * numRanks());
    }

    /** Behind it. */
    void received(CudaBank bank) {
        if (ofDispatch) {
            copy(0, bank.struct.address(), bankStruct.numBytes());
            copy(countsOffset, bank.count().address(), 4L * numLocalExperts());
        }
        copy(afterOffset, waitStats, 8L * numRanks());
        kernels.stream.record(end);
        received = true;
    }

    private void copy(long offset, long from, long numBytes) {
        if (numBytes > 0) {
            kernels.stream.copy(slot.deviceAddress() + offset, from, numBytes);
        }
    }

    /** Whether everything below is known. */
    boolean isKnown() {
        return received && end.isDone();
    }

    /** [El] Rows of each local expert. */
    int[] counts() {
        return memory.asSlice(countsOffset, 4L * numLocalExperts()).toArray(ValueLayout.JAVA_INT);
    }

    /** [R] Rows that the dispatch brought from each rank. */
    int[] receivedRows() {
        return ints("num_rows");
    }

    /** [R] Selections that they stand for. */
    int[] receivedSelections() {
        return ints("num_selections");
    }

    private int[] ints(String field) {
        return memory.asSlice(bankStruct.offset(field), 4L * numRanks())
                .toArray(ValueLayout.JAVA_INT);
    }

    /** [R] Nanoseconds waited for each rank. */
    long[] waits() {
        long[] waits = new long[numRanks()];
        for (int rank = 0; rank < waits.length; rank++) {
            waits[rank] =
                    memory.get(ValueLayout.JAVA_LONG, afterOffset + 8L * rank)
                            - memory.get(ValueLayout.JAVA_LONG, beforeOffset + 8L * rank);
        }
        return waits;
    }

    /**
     * [R] This rank's selections of experts of each rank to which the dispatch sent, or its tokens
     * that have such.
     */
    int[] ownRows(boolean tokens) {
        int[] rows = selections.perRank(tokens);
        long reached = bankStruct.offset("reached");
        for (int rank = 0; rank < rows.length; rank++) {
            int word = rank / Integer.SIZE;
            int ranks = memory.get(ValueLayout.JAVA_INT, reached + 4L * word);
            rows[rank] = (ranks >> rank & 1) != 0 ? rows[rank] : 0;
        }
        return rows;
    }
}
