package io.deepep.lowlatency.host;

import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;
import io.deepep.lowlatency.BankHandle;
import io.deepep.lowlatency.Kind;
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
    private final Peers peers;
    private final CombineHeaders headers;
    private final HomeRows rows;
    private final int numLocalExperts;
    private final boolean[] came;

    Combiner(HostLowLatencyKernels kernels) {
        this.kernels = kernels;
        this.peers = kernels.peers;
        this.headers = new CombineHeaders(kernels, peers.count());
        this.rows = new HomeRows(kernels);
        this.numLocalExperts = kernels.limits.numLocalExperts(peers.count());
        this.came = new boolean[peers.count()];
    }

    /** Sends and returns the number of the combine. */
    long send(LowLatencyCombinePlan plan) {
        BankHandle<HostBank> handle = BankHandle.of(plan.handle(), kernels.dispatches);
        HostBank from = handle.received();
        long call = kernels.combines.open();
        CombineBank bank = kernels.combines.of(call);
        handle.setCombined();
        bank.dispatch = from.call();
        bank.nextDispatch = kernels.dispatches.next();
        System.arraycopy(from.reached, 0, bank.expected, 0, peers.count());
        Arrays.fill(bank.sentRows, 0);
        // The owners have summed what lay in the slots of this parity.
        peers.awaitSlots(Kind.COMBINE, call, bank.reached);
        for (int owner = 0; owner < peers.count(); owner++) {
            if (bank.reached[owner]) {
                headers.begin(owner, call, plan);
            }
        }
        long bad = firstBadSelection(plan, from.sentTopkIdx);
        for (int owner = 0; owner < peers.count(); owner++) {
            if (!bank.reached[owner]) {
                continue;
            }
            if (bad < 0) {
                bank.sentRows[owner] =
                        plan.isPreReduced()
                                ? sendSums(plan, from, call, owner)
                                : sendRows(plan, from, call, owner);
            }
            headers.put(owner, call, from, plan, bad);
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

    /** Sends all rows of an owner's tokens; returns how many. */
    private int sendRows(LowLatencyCombinePlan plan, HostBank from, long call, int owner) {
        int sent = 0;
        for (int expert = 0; expert < numLocalExperts; expert++) {
            sent += sendRows(plan, from, call, owner, expert);
        }
        return sent;
    }

    private int sendRows(
            LowLatencyCombinePlan plan, HostBank from, long call, int owner, int expert) {
        Tensor x = plan.x();
        long place = 8L * ((long) expert * peers.count() + owner);
        long range = from.layoutRange().segment().get(LONG, place);
        int begin = LowLatencyHandle.rangeBegin(range);
        int end = begin + LowLatencyHandle.rangeCount(range);
        for (int row = begin; row < end; row++) {
            long source = 4L * ((long) expert * from.numSlots() + row);
            int token = from.srcInfo().segment().get(INT, source);
            int k = from.srcSelection.get(INT, source);
            rows.send(plan.format(), x.segment(), rowAt(x, expert, row), owner, call, token, k);
        }
        return end - begin;
    }

    /**
     * Sends the sums of all of an owner's tokens; returns how many. This rank's rows of a token are
     * summed, weighted, in fp32 and in the order of selections, and rounded to BF16; the sum has
     * the slot of the first of them.
     */
    private int sendSums(LowLatencyCombinePlan plan, HostBank from, long call, int owner) {
        Tensor x = plan.x();
        WeightedRows weighted = from.weightedRows;
        int numRows = from.receivedRows[owner];
        for (int i = 0; i < numRows; i++) {
            int first = -1;
            rows.clear();
            for (int k = 0; k < from.numTopk(); k++) {
                if (weighted.isHere(owner, i, k)) {
                    first = first < 0 ? k : first;
                    long at = rowAt(x, weighted.expert(owner, i, k), weighted.row(owner, i, k));
                    rows.add(weighted.weight(owner, i, k), x.segment(), at);
                }
            }
            rows.sendSum(plan.format(), owner, call, weighted.token(owner, i), first);
        }
        return numRows;
    }

    private static long rowAt(Tensor x, int expert, int row) {
        return 2L * (x.stride(0) * expert + x.stride(1) * row);
    }

    void receive(long call, LowLatencyCombinePlan plan, Tensor out) {
        CombineBank bank = kernels.combines.of(call);
        bank.forgetSent();
        // acquire; pairs with the release in Headers.announce.
        int other =
                peers.awaitHeaders(
                        Kind.COMBINE,
                        call,
                        bank.nextDispatch,
                        bank.reached,
                        came,
                        plan.waitCostStats());
        try {
            if (other >= 0) {
                kernels.skip(Kind.DISPATCH, bank.nextDispatch);
                throw headers.errors().otherKind(other);
            }
            headers.check(call, came, bank.dispatch, plan);
            for (int sender = 0; sender < peers.count(); sender++) {
                came[sender] =
                        came[sender] && bank.expected[sender] && headers.hasRows(call, sender);
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

    private void addRows(LowLatencyCombinePlan plan, long call, int token) {
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
                rows.addReceived(weight, call, sender, token, k);
            }
        }
    }
}
