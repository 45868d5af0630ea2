package io.deepep.lowlatency.host;

import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;
import io.deepep.error.CallOrderException;
import io.deepep.host.HostHeap;
import io.deepep.lowlatency.BankHandle;
import io.deepep.lowlatency.CallEpoch;
import io.deepep.lowlatency.Kind;
import io.deepep.lowlatency.LowLatencyLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/**
 * Both halves of a combine. A row goes back to the slot of its token and selection at the token's
 * owner, so the owner sums in the order of selections whatever arrives first, and its sum is the
 * same on every run.
 */
final class Combiner {
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;

    private final HostLowLatencyKernels kernels;
    private final LowLatencyLayout layout;
    private final HostHeap rdma;
    private final Peers peers;
    private final CombineHeaders headers;
    private final CombineFlags flags;
    private final RowReducer reducer;
    private final int rank;
    private final int numLocalExperts;
    private final boolean[] came;
    private final SentRows rows;

    /** By parity: the combine that is sent but not received, or 0. */
    private final long[] unreceived = new long[2];

    /** By parity: the dispatch whose tokens that combine returns, and who was given them. */
    private final long[] dispatch = new long[2];

    private final boolean[][] expected;

    /** By parity: the owners that that combine was sent to. */
    private final boolean[][] reached;

    /** By parity: rows that went to each owner in that combine. */
    private final int[][] sentRows;

    /** By parity: the dispatch that comes next after that combine was begun. */
    private final long[] nextDispatch = new long[2];

    private long calls;

    Combiner(HostLowLatencyKernels kernels, Peers peers) {
        this.kernels = kernels;
        this.layout = kernels.layout;
        this.rdma = kernels.rdma;
        this.peers = peers;
        this.rank = kernels.rank;
        this.headers = new CombineHeaders(kernels, peers.count());
        this.flags = new CombineFlags(kernels);
        this.rows = new SentRows(kernels.limits);
        this.reducer = new RowReducer(kernels, flags, rows);
        this.numLocalExperts = kernels.limits.numLocalExperts(peers.count());
        this.reached = new boolean[2][peers.count()];
        this.came = new boolean[peers.count()];
        this.expected = new boolean[2][peers.count()];
        this.sentRows = new int[2][peers.count()];
    }

    void reset() {
        calls = 0;
        Arrays.fill(unreceived, 0);
    }

    /** Sends and returns the number of the combine. */
    long send(LowLatencyCombinePlan plan) {
        BankHandle<DispatchBank> handle = BankHandle.of(plan.handle(), kernels.banks);
        DispatchBank bank = handle.received();
        long call = calls + 1;
        int parity = CallEpoch.parity(call);
        if (unreceived[parity] != 0) {
            throw new CallOrderException(
                    "combine %s has been sent but not received; run its receive hook before the second combine after it"
                            .formatted(unreceived[parity]));
        }
        handle.setCombined();
        calls = call;
        unreceived[parity] = call;
        dispatch[parity] = bank.dispatch();
        nextDispatch[parity] = kernels.banks.next();
        // Kept here, because the bank may hold a later dispatch when this combine is received.
        System.arraycopy(bank.reached, 0, expected[parity], 0, peers.count());
        // The owners have summed what lay in the slots of this parity.
        boolean[] reachable = reached[parity];
        peers.awaitSlots(Kind.COMBINE, call, reachable);
        for (int owner = 0; owner < peers.count(); owner++) {
            if (reachable[owner]) {
                headers.begin(owner, call, plan);
            }
        }
        long bad = firstBadSelection(plan, bank.sentTopkIdx);
        for (int owner = 0; owner < peers.count(); owner++) {
            sentRows[parity][owner] = 0;
            if (!reachable[owner]) {
                continue;
            }
            if (bad < 0) {
                sentRows[parity][owner] =
                        plan.isPreReduced()
                                ? reducer.send(plan, bank, call, owner)
                                : sendRows(plan, bank, call, owner);
            }
            headers.put(owner, call, bank, plan, bad);
        }
        return call;
    }

    /**
     * The first selection that is not the one that was dispatched, or -1. One may be left out,
     * unless its rank has summed it with others.
     */
    private static long firstBadSelection(LowLatencyCombinePlan plan, MemorySegment sent) {
        MemorySegment topk = plan.topkIdx().segment();
        for (long i = 0; i < plan.topkIdx().numElements(); i++) {
            long expert = topk.get(LONG, 8 * i);
            boolean leftOut = expert == -1 && !plan.isPreReduced();
            if (!leftOut && expert != sent.get(LONG, 8 * i)) {
                return i;
            }
        }
        return -1;
    }

    private int sendRows(LowLatencyCombinePlan plan, DispatchBank bank, long call, int owner) {
        int sent = 0;
        for (int expert = 0; expert < numLocalExperts; expert++) {
            sent += sendRows(plan, bank, call, owner, expert);
        }
        return sent;
    }

    private int sendRows(
            LowLatencyCombinePlan plan, DispatchBank bank, long call, int owner, int expert) {
        int parity = CallEpoch.parity(call);
        Tensor x = plan.x();
        MemorySegment from = x.segment();
        MemorySegment to = rdma.of(owner);
        long range = bank.layoutRange.get(LONG, 8L * ((long) expert * peers.count() + owner));
        int begin = LowLatencyHandle.rangeBegin(range);
        int end = begin + LowLatencyHandle.rangeCount(range);
        for (int row = begin; row < end; row++) {
            long place = 4L * ((long) expert * bank.numSlots + row);
            int token = bank.srcInfo.get(INT, place);
            int k = bank.srcSelection.get(INT, place);
            long slot = layout.combineRow(parity, rank, token, k);
            long at = 2L * (x.stride(0) * expert + x.stride(1) * row);
            rows.put(plan.format(), from, at, to, slot);
            flags.set(owner, call, token, k);
        }
        return end - begin;
    }

    /** Whether a combine is sent and not received. */
    boolean isSent(long call) {
        return unreceived[CallEpoch.parity(call)] == call;
    }

    void receive(long call, LowLatencyCombinePlan plan, Tensor out) {
        int parity = CallEpoch.parity(call);
        unreceived[parity] = 0;
        // acquire; pairs with the release in Headers.announce.
        int other =
                peers.awaitHeaders(
                        Kind.COMBINE,
                        call,
                        nextDispatch[parity],
                        reached[parity],
                        came,
                        plan.waitCostStats());
        try {
            if (other >= 0) {
                kernels.skipDispatch(nextDispatch[parity]);
                throw headers.errors().otherKind(other);
            }
            headers.check(call, came, dispatch[parity], plan);
            for (int sender = 0; sender < peers.count(); sender++) {
                came[sender] =
                        came[sender] && expected[parity][sender] && headers.hasRows(call, sender);
            }
            int numTokens = (int) out.size(0);
            for (int token = 0; token < numTokens; token++) {
                addRows(plan, call, token);
                rows.storeSum(plan.format(), out.segment(), 2L * out.stride(0) * token);
            }
        } finally {
            // Also after an error that every rank learned of: the slots are free again.
            peers.acknowledge(Kind.COMBINE, call);
        }
    }

    /** Rows that went to each owner in the latest combine of that call's parity. */
    int[] sentRows(long call) {
        return sentRows[CallEpoch.parity(call)];
    }

    /** Rows that each rank returns for this rank's selections. */
    int[] homeRows(LowLatencyCombinePlan plan) {
        int[] rows = new int[peers.count()];
        MemorySegment topk = plan.topkIdx().segment();
        int numTopk = (int) plan.topkIdx().size(1);
        for (long i = 0; i < plan.topkIdx().numElements(); i++) {
            int sender = senderOf(topk.get(LONG, 8 * i));
            if (sender >= 0 && bringsRow(plan, topk, i / numTopk * numTopk, i)) {
                rows[sender]++;
            }
        }
        return rows;
    }

    /** The rank of a selected expert, or -1: of a call that failed, it may be any number. */
    private int senderOf(long expert) {
        boolean exists = expert >= 0 && expert < kernels.limits.numExperts();
        return exists ? (int) expert / numLocalExperts : -1;
    }

    /**
     * Whether a selection's own slot gets a row: pre-reduced, only the first of each rank, of those
     * from {@code first} on.
     */
    private boolean bringsRow(
            LowLatencyCombinePlan plan, MemorySegment topk, long first, long selection) {
        if (!plan.isPreReduced()) {
            return true;
        }
        int sender = senderOf(topk.get(LONG, 8 * selection));
        for (long earlier = first; earlier < selection; earlier++) {
            if (senderOf(topk.get(LONG, 8 * earlier)) == sender) {
                return false;
            }
        }
        return true;
    }

    /** The number of the next combine. */
    long nextCall() {
        return calls + 1;
    }

    /**
     * Counts a combine that another rank made where this one dispatched, so that they are in step
     * again, unless this one has made it since.
     */
    void skip(long skipped) {
        if (skipped == nextCall()) {
            calls = skipped;
            peers.acknowledge(Kind.COMBINE, skipped);
        }
    }

    private void addRows(LowLatencyCombinePlan plan, long call, int token) {
        int parity = CallEpoch.parity(call);
        MemorySegment topk = plan.topkIdx().segment();
        int numTopk = (int) plan.topkIdx().size(1);
        rows.clear();
        for (int k = 0; k < numTopk; k++) {
            long selection = (long) token * numTopk + k;
            int sender = senderOf(topk.get(LONG, 8 * selection));
            if (sender >= 0
                    && came[sender]
                    && bringsRow(plan, topk, (long) token * numTopk, selection)) {
                float weight =
                        plan.isPreReduced()
                                ? 1
                                : plan.topkWeights().segment().get(FLOAT, 4 * selection);
                flags.require(call, sender, token, k);
                rows.add(weight, rdma.local(), layout.combineRow(parity, sender, token, k));
            }
        }
    }
}
