package io.deepep.lowlatency.host;

import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.host.HostHeap;
import io.deepep.host.HostMemory;
import io.deepep.host.RowMath;
import io.deepep.lowlatency.CallEpoch;
import io.deepep.lowlatency.DispatchFlagWord;
import io.deepep.lowlatency.DispatchWord;
import io.deepep.lowlatency.Kind;
import io.deepep.lowlatency.LowLatencyFormats;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.spi.FaultCode;
import io.deepep.spi.RowFormat;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/**
 * The send half of a dispatch: each token once to every rank that holds one of its experts, then a
 * header to each rank.
 */
final class DispatchSender {
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;

    private final HostLowLatencyKernels kernels;
    private final LowLatencyLayout layout;
    private final HostHeap rdma;
    private final Peers peers;
    private final Headers headers;
    private final int rank;
    private final LowLatencyLimits limits;
    private final int numLocalExperts;

    /** By rank: rows that went there, and selections that they stand for. */
    private final int[] numRows;

    private final int[] numSelections;

    /** By expert: its selections so far. */
    private final int[] counts;

    /** Of the token at hand, by selection: the rank it goes to, or -1, and what its flag says. */
    private final int[] receivers;

    private final int[] selections;

    /** The first selection that is no expert, as {@code token * numTopk + k}, or -1. */
    private long bad;

    /** The first expert that has more selections than an expert has rows for one source, or -1. */
    private int crowded;

    /** One row as it travels, so that it is cast once however many ranks get it. */
    private final MemorySegment wire;

    DispatchSender(HostLowLatencyKernels kernels) {
        this.kernels = kernels;
        this.layout = kernels.layout;
        this.rdma = kernels.rdma;
        this.peers = kernels.peers;
        this.rank = kernels.rank;
        this.headers = new Headers(Kind.DISPATCH, kernels);
        this.limits = kernels.limits;
        this.numLocalExperts = limits.numLocalExperts(peers.count());
        this.numRows = new int[peers.count()];
        this.numSelections = new int[peers.count()];
        this.counts = new int[limits.numExperts()];
        this.receivers = new int[limits.maxTopk()];
        this.selections = new int[limits.maxTopk()];
        this.wire = HostMemory.allocate(Arena.ofAuto(), RowFormat.maxStrideBytes(limits.hidden()));
    }

    /** Sends a dispatch that has been begun in its bank. */
    void send(LowLatencyDispatchPlan plan, long call) {
        int numTokens = (int) plan.x().size(0);
        int numTopk = (int) plan.topkIdx().size(1);
        MemorySegment topk = plan.topkIdx().segment();
        HostBank bank = kernels.dispatches.of(call);
        MemorySegment.copy(topk, 0, bank.sentTopkIdx, 0, 8L * numTokens * numTopk);
        // The slots are free once every receiver has taken the dispatch before the last out of
        // them. Pairs with the signal in Peers.acknowledge.
        peers.awaitSlots(Kind.DISPATCH, call, bank.reached);
        int format = LowLatencyFormats.dispatchCode(plan);
        for (int peer = 0; peer < peers.count(); peer++) {
            if (bank.reached[peer]) {
                headers.begin(peer, CallEpoch.of(call), format);
            }
        }
        Arrays.fill(numRows, 0);
        Arrays.fill(numSelections, 0);
        Arrays.fill(counts, 0);
        bad = firstBadSelection(topk, (long) numTokens * numTopk);
        if (bad < 0) {
            for (int token = 0; token < numTokens; token++) {
                sendToken(plan, CallEpoch.of(call), token, bank);
            }
        }
        crowded = firstCrowdedExpert();
        System.arraycopy(numRows, 0, bank.sentRows, 0, numRows.length);
        for (int peer = 0; peer < peers.count(); peer++) {
            if (bank.reached[peer]) {
                announce(plan, CallEpoch.of(call), peer);
            }
        }
    }

    private long firstBadSelection(MemorySegment topk, long numSelected) {
        for (long i = 0; i < numSelected; i++) {
            long expert = topk.get(LONG, 8 * i);
            if (expert < -1 || expert >= limits.numExperts()) {
                return i;
            }
        }
        return -1;
    }

    private int firstCrowdedExpert() {
        for (int expert = 0; expert < counts.length; expert++) {
            if (counts[expert] > limits.maxTokens()) {
                return expert;
            }
        }
        return -1;
    }

    /** Sends a token to each rank that it selects, in the order of its selections. */
    private void sendToken(LowLatencyDispatchPlan plan, int epoch, int token, HostBank bank) {
        MemorySegment topk = plan.topkIdx().segment();
        int numTopk = bank.numTopk();
        for (int k = 0; k < numTopk; k++) {
            int expert = (int) topk.get(LONG, 8 * ((long) token * numTopk + k));
            receivers[k] = expert < 0 ? -1 : expert / numLocalExperts;
            // Those that nobody is sent count too: all ranks find out if there are too many.
            selections[k] =
                    expert < 0
                            ? DispatchFlagWord.NO_SELECTION
                            : DispatchFlagWord.selection(
                                    expert % numLocalExperts, counts[expert]++);
        }
        boolean packed = false;
        for (int k = 0; k < numTopk; k++) {
            int peer = receivers[k];
            if (peer < 0 || !bank.reached[peer] || isRepeated(k)) {
                continue;
            }
            if (!packed) {
                packRow(plan, token, bank.rowFormat);
                packed = true;
            }
            putRow(plan, epoch, token, peer, bank.rowFormat);
        }
    }

    /** Whether an earlier selection of the token went to the same rank. */
    private boolean isRepeated(int k) {
        for (int earlier = 0; earlier < k; earlier++) {
            if (receivers[earlier] == receivers[k]) {
                return true;
            }
        }
        return false;
    }

    private void packRow(LowLatencyDispatchPlan plan, int token, RowFormat format) {
        Tensor x = plan.x();
        long from = 2L * x.stride(0) * token;
        if (!plan.format().isFp8()) {
            MemorySegment.copy(x.segment(), from, wire, 0, format.dataBytes());
            return;
        }
        boolean powerOfTwo = plan.format() != LowLatencyFormat.FP8;
        long scales = format.elementBytes();
        RowMath.castFp8(x.segment(), from, wire, 0, wire, scales, plan.hidden(), powerOfTwo);
    }

    private void putRow(
            LowLatencyDispatchPlan plan, int epoch, int token, int peer, RowFormat format) {
        int numTopk = (int) plan.topkIdx().size(1);
        MemorySegment weights = plan.topkWeights() == null ? null : plan.topkWeights().segment();
        MemorySegment to = rdma.of(peer);
        int row = numRows[peer]++;
        int tag = DispatchFlagWord.tag(numSelections[peer], token);
        long slot = layout.dispatchRow(epoch & 1, rank, token, format, numTopk);
        MemorySegment.copy(wire, 0, to, slot, format.dataBytes());
        // What orders the row is the header, which comes last.
        long flag = layout.dispatchFlag(epoch & 1, rank, row, numTopk);
        for (int k = 0; k < numTopk; k++) {
            boolean goes = receivers[k] == peer;
            numSelections[peer] += goes ? 1 : 0;
            int selection = goes ? selections[k] : DispatchFlagWord.NO_SELECTION;
            long weight = 4 * ((long) token * numTopk + k);
            DispatchFlagWord.EPOCH.set(to, flag, k, epoch);
            DispatchFlagWord.SELECTION.set(to, flag, k, selection);
            DispatchFlagWord.WEIGHT.set(
                    to, flag, k, weights == null ? 0 : weights.get(INT, weight));
            DispatchFlagWord.TAG.set(to, flag, k, tag);
        }
    }

    private void announce(LowLatencyDispatchPlan plan, int epoch, int peer) {
        int numTopk = (int) plan.topkIdx().size(1);
        headers.put(peer, epoch, DispatchWord.TOPK, numTopk);
        headers.put(peer, epoch, DispatchWord.NUM_ROWS, numRows[peer]);
        headers.put(peer, epoch, DispatchWord.NUM_SELECTIONS, numSelections[peer]);
        headers.put(peer, epoch, DispatchWord.NUM_TOKENS, (int) plan.x().size(0));
        for (int expert = 0; expert < numLocalExperts; expert++) {
            int count = counts[peer * numLocalExperts + expert];
            headers.put(peer, epoch, DispatchWord.COUNT + expert, count);
        }
        FaultCode status = FaultCode.OK;
        if (bad >= 0) {
            status = FaultCode.EXPERT_OUT_OF_RANGE;
            long value = plan.topkIdx().segment().get(LONG, 8 * bad);
            headers.putCulprit(peer, epoch, (int) bad / numTopk, (int) bad % numTopk, value);
        } else if (crowded >= 0) {
            status = FaultCode.SELECTED_TOO_OFTEN;
            headers.putCulprit(peer, epoch, 0, crowded, counts[crowded]);
        }
        headers.announce(peer, epoch, status.value());
    }
}
