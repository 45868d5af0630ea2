package io.deepep.lowlatency.host;

import io.deepep.CombineFormat;
import io.deepep.host.HostHeap;
import io.deepep.host.HostMemory;
import io.deepep.host.RowMath;
import io.deepep.lowlatency.CallEpoch;
import io.deepep.lowlatency.Fp8Parts;
import io.deepep.lowlatency.LogFmt10;
import io.deepep.lowlatency.LowLatencyLayout;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The rows of a combine: how each format lays them into a slot, and weighted sums of them in fp32.
 * Each part of a row has a flag, as kernels send it. Here the header orders what flags vouch for,
 * because it comes last. Serves one thread.
 */
final class HomeRows {
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;

    private final LowLatencyLayout layout;
    private final HostHeap rdma;
    private final int rank;
    private final LogFmt10 logFmt = new LogFmt10();
    private final float[] sum;
    private final float[] weights;
    private final MemorySegment[] memories;
    private final long[] offsets;
    private int hidden;
    private int numParts;
    private int count;

    /** A sum before it is encoded. */
    private final MemorySegment rounded;

    HomeRows(HostLowLatencyKernels kernels) {
        this.layout = kernels.layout;
        this.rdma = kernels.rdma;
        this.rank = kernels.rank;
        int maxTopk = kernels.limits.maxTopk();
        this.sum = new float[kernels.limits.hidden()];
        this.weights = new float[maxTopk];
        this.memories = new MemorySegment[maxTopk];
        this.offsets = new long[maxTopk];
        this.rounded = HostMemory.allocate(Arena.ofAuto(), 2L * kernels.limits.hidden());
    }

    /** The rows that are sent and summed from now on have {@code hidden} elements. */
    void use(int hidden) {
        this.hidden = hidden;
        this.numParts = LowLatencyLayout.numParts(hidden);
    }

    /** Sends a row of BF16 to the slot of its token and selection at the token's owner. */
    void send(
            CombineFormat format,
            MemorySegment bf16,
            long from,
            int owner,
            long call,
            int token,
            int k) {
        MemorySegment to = rdma.of(owner);
        long slot = layout.combineRow(CallEpoch.parity(call), rank, token, k);
        switch (format) {
            case BF16 -> MemorySegment.copy(bf16, from, to, slot, 2L * hidden);
            case FP8 -> Fp8Parts.encodeRow(bf16, from, to, slot, hidden);
            case LOGFMT -> logFmt.encodeRow(bf16, from, to, slot, hidden);
        }
        flag(to, call, token, k);
    }

    /** Sends the sum of the added rows, which are BF16, in the same way. */
    void sendSum(CombineFormat format, int owner, long call, int token, int k) {
        if (format == CombineFormat.BF16) {
            MemorySegment to = rdma.of(owner);
            storeSum(format, to, layout.combineRow(CallEpoch.parity(call), rank, token, k));
            flag(to, call, token, k);
        } else {
            storeSum(CombineFormat.BF16, rounded, 0);
            send(format, rounded, 0, owner, call, token, k);
        }
    }

    private void flag(MemorySegment to, long call, int token, int k) {
        int epoch = CallEpoch.of(call);
        for (int part = 0; part < numParts; part++) {
            to.set(INT, layout.combineFlag(epoch & 1, token, part, rank, k), epoch);
        }
    }

    /** Begins a sum. */
    void clear() {
        count = 0;
    }

    /** Adds the row at {@code offset}, times its weight, after those that were added before. */
    void add(float weight, MemorySegment memory, long offset) {
        weights[count] = weight;
        memories[count] = memory;
        offsets[count++] = offset;
    }

    /** Adds what a sender has sent for a token and selection, as its header says. */
    void addReceived(float weight, long call, int sender, int token, int k) {
        int epoch = CallEpoch.of(call);
        for (int part = 0; part < numParts; part++) {
            long flag = layout.combineFlag(epoch & 1, token, part, sender, k);
            if (rdma.local().get(INT, flag) != epoch) {
                throw new IllegalStateException(
                        "rank %s has not sent part %s of topkIdx[%s][%s] in combine %s"
                                .formatted(sender, part, token, k, call));
            }
        }
        add(weight, rdma.local(), layout.combineRow(epoch & 1, sender, token, k));
    }

    /** Stores the sum of the added rows, which are in {@code format}, as BF16. */
    void storeSum(CombineFormat format, MemorySegment to, long at) {
        RowMath.clear(sum, hidden);
        if (format == CombineFormat.BF16) {
            RowMath.addScaledBf16(sum, weights, memories, offsets, count, hidden);
        }
        for (int i = 0; i < count && format != CombineFormat.BF16; i++) {
            if (format == CombineFormat.FP8) {
                Fp8Parts.addScaledRow(sum, weights[i], memories[i], offsets[i], hidden);
            } else {
                logFmt.addScaledRow(sum, weights[i], memories[i], offsets[i], hidden);
            }
        }
        RowMath.storeBf16(sum, to, at, hidden);
    }
}
