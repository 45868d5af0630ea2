package io.deepep.lowlatency.host;

import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyHandle;
import io.deepep.Tensor;
import io.deepep.lowlatency.BankHandle;
import io.deepep.lowlatency.CallEpoch;
import io.deepep.lowlatency.CombineWord;
import io.deepep.lowlatency.Kind;
import io.deepep.lowlatency.LowLatencyFormats;
import io.deepep.lowlatency.Selections;
import io.deepep.spi.FaultCode;
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
    private final Headers headers;
    private final HomeRows rows;
    private final int numExperts;
    private final int numLocalExperts;
    private final boolean[] came;

    Combiner(HostLowLatencyKernels kernels) {
        this.kernels = kernels;
        this.peers = kernels.peers;
        this.headers = new Headers(Kind.COMBINE, kernels);
        this.numExperts = kernels.limits.numExperts();
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
                headers.begin(owner, CallEpoch.of(call), LowLatencyFormats.combineCode(plan));
            }
        }
        rows.use(plan.hidden());
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
            announce(owner, CallEpoch.of(call), from, plan, bad);
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

    /**
     * Writes the rest of this rank's header at {@code owner}.
     *
     * @param bad the first selection of the plan that is no expert or not the one that was
     *     dispatched, or -1
     */
    private void announce(
            int owner, int epoch, HostBank from, LowLatencyCombinePlan plan, long bad) {
        FaultCode status = FaultCode.OK;
        if (bad >= 0) {
            int numTopk = from.numTopk();
            long value = plan.topkIdx().segment().get(LONG, 8 * bad);
            boolean isSelection = value >= -1 && value < numExperts;
            status = isSelection ? FaultCode.SELECTION_CHANGED : FaultCode.EXPERT_OUT_OF_RANGE;
            headers.putCulprit(owner, epoch, (int) bad / numTopk, (int) bad % numTopk, value);
        }
        headers.put(owner, epoch, CombineWord.HAS_ROWS, from.present[owner] ? 1 : 0);
        headers.put(owner, epoch, CombineWord.COMBINE_STATUS, status.value());
        headers.announce(owner, epoch, CallEpoch.of(from.call()));
    }

    /** Sends all rows of an owner's tokens; returns how many. */
    private int sendRows(LowLatencyCombinePlan plan, HostBank from, long call, int owner) {
        Tensor x = plan.x();
        int sent = 0;
        for (int expert = 0; expert < numLocalExperts; expert++) {
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
            sent += end - begin;
        }
        return sent;
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

    void receive(long call, LowLatencyCombinePlan plan, Selections selections, Tensor out) {
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
                throw headers.errors.otherKind(other);
            }
            // What all ranks conclude alike.
            int dispatch = CallEpoch.of(bank.dispatch);
            headers.requireSame(call, came, CombineWord.DISPATCH_EPOCH, dispatch);
            int format = LowLatencyFormats.combineCode(plan);
            headers.requireSame(call, came, CombineWord.ROW_FORMAT, format);
            headers.requireValidSelections(call, came);
            for (int sender = 0; sender < peers.count(); sender++) {
                came[sender] =
                        came[sender]
                                && bank.expected[sender]
                                && headers.get(call, sender, CombineWord.HAS_ROWS) != 0;
                bank.expected[sender] = came[sender];
            }
            rows.use(plan.hidden());
            for (int token = 0; token < selections.numTokens(); token++) {
                addRows(plan, call, selections, token);
                rows.storeSum(plan.format(), out.segment(), 2L * out.stride(0) * token);
            }
        } finally {
            // Also after an error that every rank learned of: the slots are free again.
            peers.acknowledge(Kind.COMBINE, call);
        }
    }

    /** Of a pre-reduced combine, a rank brings one row for all selections of its experts. */
    private void addRows(LowLatencyCombinePlan plan, long call, Selections selections, int token) {
        rows.clear();
        for (int k = 0; k < selections.numTopk(); k++) {
            int sender = selections.rankOf(token, k);
            if (sender < 0 || !came[sender]) {
                continue;
            }
            if (!plan.isPreReduced()) {
                long at = 4 * ((long) token * selections.numTopk() + k);
                float weight = plan.topkWeights().segment().get(FLOAT, at);
                rows.addReceived(weight, call, sender, token, k);
            } else if (selections.isFirstOfRank(token, k)) {
                rows.addReceived(1, call, sender, token, k);
            }
        }
    }
}
