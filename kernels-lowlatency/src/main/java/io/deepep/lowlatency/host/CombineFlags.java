package io.deepep.lowlatency.host;

import io.deepep.host.HostHeap;
import io.deepep.lowlatency.CallEpoch;
import io.deepep.lowlatency.LowLatencyLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The flags of combined rows: one for each part of a row, as kernels send it. Here the header
 * orders what they vouch for, because it comes last.
 */
final class CombineFlags {
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;

    private final LowLatencyLayout layout;
    private final HostHeap rdma;
    private final int rank;
    private final int numParts;

    CombineFlags(HostLowLatencyKernels kernels) {
        this.layout = kernels.layout;
        this.rdma = kernels.rdma;
        this.rank = kernels.rank;
        this.numParts = layout.numParts();
    }

    /** Flags all parts of this rank's row of a selection. */
    void set(int owner, long call, int token, int k) {
        MemorySegment to = rdma.of(owner);
        int epoch = CallEpoch.of(call);
        for (int part = 0; part < numParts; part++) {
            to.set(INT, layout.combineFlag(epoch & 1, token, part, rank, k), epoch);
        }
    }

    /** Makes sure that all parts of a sender's row have come, as its header says. */
    void require(long call, int sender, int token, int k) {
        int epoch = CallEpoch.of(call);
        for (int part = 0; part < numParts; part++) {
            long flag = layout.combineFlag(epoch & 1, token, part, sender, k);
            if (rdma.local().get(INT, flag) != epoch) {
                throw new IllegalStateException(
                        "rank %s has not sent part %s of topkIdx[%s][%s] in combine %s"
                                .formatted(sender, part, token, k, call));
            }
        }
    }
}
