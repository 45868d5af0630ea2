package io.deepep.lowlatency.host;

import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.error.RankMismatchException;
import io.deepep.error.RoutingException;
import io.deepep.host.HostContext;
import io.deepep.host.HostHeap;
import io.deepep.lowlatency.LowLatencyCombineHeader;
import io.deepep.lowlatency.LowLatencyHeader;
import io.deepep.lowlatency.LowLatencyLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * What ranks announce with a combine, see {@link LowLatencyCombineHeader}: put by the sender before
 * its flag, checked by every rank after the flags have come, so that all reach the same verdict.
 */
final class CombineHeaders {
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;

    private final LowLatencyLayout layout;
    private final HostHeap rdma;
    private final int rank;
    private final int numRanks;
    private final int numExperts;

    CombineHeaders(HostContext context, LowLatencyLimits limits, LowLatencyLayout layout) {
        this.layout = layout;
        this.rdma = context.rdma();
        this.rank = context.topology().rank();
        this.numRanks = context.topology().numRanks();
        this.numExperts = limits.numExperts();
    }

    /**
     * Writes this rank's header at {@code owner}.
     *
     * @param bad the first selection of the plan that is no expert or not the one that was
     *     dispatched, or -1
     */
    void put(int owner, int parity, DispatchBank bank, LowLatencyCombinePlan plan, long bad) {
        MemorySegment to = rdma.of(owner);
        long header = layout.combineHeaders().at(parity, rank);
        to.set(LONG, header + LowLatencyCombineHeader.DISPATCH_EPOCH, bank.epoch);
        to.set(
                LONG,
                header + LowLatencyCombineHeader.FORMAT,
                LowLatencyCombineHeader.formatCode(plan));
        to.set(LONG, header + LowLatencyCombineHeader.HAS_ROWS, bank.present[owner] ? 1 : 0);
        to.set(LONG, header + LowLatencyCombineHeader.STATUS, LowLatencyHeader.STATUS_OK);
        if (bad >= 0) {
            Tensor topkIdx = plan.topkIdx();
            long value = topkIdx.segment().get(LONG, 8 * bad);
            int status =
                    value < -1 || value >= numExperts
                            ? LowLatencyHeader.STATUS_TOPK_RANGE
                            : LowLatencyHeader.STATUS_TOPK_CHANGED;
            to.set(LONG, header + LowLatencyCombineHeader.STATUS, status);
            long detail = header + LowLatencyCombineHeader.DETAIL;
            to.set(LONG, detail, bad / topkIdx.size(1));
            to.set(LONG, detail + 8, bad % topkIdx.size(1));
            to.set(LONG, detail + 16, value);
        }
    }

    /**
     * Holds the headers of the ranks that came against one another.
     *
     * @param dispatch the epoch of the dispatch that this rank combines
     * @throws RankMismatchException if a rank combines another dispatch or in another format
     * @throws RoutingException if a rank's selections are not valid
     */
    void check(int parity, boolean[] came, long dispatch, LowLatencyCombinePlan plan) {
        for (int sender = 0; sender < numRanks; sender++) {
            if (came[sender]) {
                checkAgreed(parity, sender, dispatch, LowLatencyCombineHeader.formatCode(plan));
            }
        }
        for (int sender = 0; sender < numRanks; sender++) {
            if (came[sender]) {
                checkStatus(parity, sender);
            }
        }
    }

    private void checkAgreed(int parity, int sender, long dispatch, long format) {
        long given = field(parity, sender, LowLatencyCombineHeader.DISPATCH_EPOCH);
        if (given != dispatch) {
            throw RankMismatchException.of(
                    "low-latency combine",
                    "the dispatch that it belongs to",
                    rank,
                    "dispatch " + dispatch,
                    sender,
                    "dispatch " + given);
        }
        given = field(parity, sender, LowLatencyCombineHeader.FORMAT);
        if (given != format) {
            throw RankMismatchException.of(
                    "low-latency combine",
                    "format",
                    rank,
                    LowLatencyCombineHeader.formatName(format),
                    sender,
                    LowLatencyCombineHeader.formatName(given));
        }
    }

    private void checkStatus(int parity, int sender) {
        long status = field(parity, sender, LowLatencyCombineHeader.STATUS);
        if (status == LowLatencyHeader.STATUS_OK) {
            return;
        }
        long token = field(parity, sender, LowLatencyCombineHeader.DETAIL);
        long k = field(parity, sender, LowLatencyCombineHeader.DETAIL + 8);
        long value = field(parity, sender, LowLatencyCombineHeader.DETAIL + 16);
        String what =
                status == LowLatencyHeader.STATUS_TOPK_CHANGED
                        ? LowLatencyCombineHeader.topkChangedMessage(token, k, value)
                        : LowLatencyHeader.topkRangeMessage(token, k, value, numExperts)
                                + "; combine with the topkIdx that was dispatched";
        throw new RoutingException(sender, what);
    }

    /** Whether {@code sender} computed on this rank's tokens. */
    boolean hasRows(int parity, int sender) {
        return field(parity, sender, LowLatencyCombineHeader.HAS_ROWS) != 0;
    }

    private long field(int parity, int sender, long field) {
        return rdma.local().get(LONG, layout.combineHeaders().at(parity, sender) + field);
    }
}
