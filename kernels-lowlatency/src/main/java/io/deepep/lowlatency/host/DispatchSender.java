package io.deepep.lowlatency.host;

import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyFormat;
import io.deepep.Tensor;
import io.deepep.host.HostHeap;
import io.deepep.host.HostMemory;
import io.deepep.host.RowMath;
import io.deepep.lowlatency.CallEpoch;
import io.deepep.lowlatency.CallWord;
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
    private final int maxTokens;
    private final int numExperts;
    private final int numLocalExperts;
    private final int hidden;

    /** By rank: rows that went there, and selections that they stand for. */
    private final int[] numRows;

    private final int[] numSelections;

    /** By expert: its selections so far. */
    private final int[] counts;

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
        this.maxTokens = kernels.limits.maxTokens();
        this.numExperts = kernels.limits.numExperts();
        this.numLocalExperts = kernels.limits.numLocalExperts(peers.count());
        this.hidden = kernels.limits.hidden();
        this.numRows = new int[peers.count()];
        this.numSelections = new int[peers.count()];
        this.counts = new int[numExperts];
        this.wire = HostMemory.allocate(Arena.ofAuto(), RowFormat.maxStrideBytes(hidden));
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
                sendToken(plan, call, token, numTopk, bank.reached);
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
            if (expert < -1 || expert >= numExperts) {
                return i;
            }
        }
        return -1;
    }

    private int firstCrowdedExpert() {
        for (int expert = 0; expert < numExperts; expert++) {
            if (counts[expert] > maxTokens) {
                return expert;
            }
        }
        return -1;
    }

    private void sendToken(
            LowLatencyDispatchPlan plan, long call, int token, int numTopk, boolean[] reached) {
        MemorySegment topk = plan.topkIdx().segment();
        long first = 8L * token * numTopk;
        RowFormat format = kernels.rows(plan.format());
        boolean packed = false;
        for (int k = 0; k < numTopk; k++) {
            long expert = topk.get(LONG, first + 8L * k);
            if (expert < 0) {
                continue;
            }
            int peer = (int) expert / numLocalExperts;
            if (isRepeated(topk, first, k, peer)) {
                continue;
            }
            if (!reached[peer]) {
                count(topk, first, numTopk, peer);
                continue;
            }
            if (!packed) {
                packRow(plan, token, format);
                packed = true;
            }
            putRow(plan, CallEpoch.of(call), token, peer, format);
        }
    }

    /** Whether an earlier selection of the token went to the same rank. */
    private boolean isRepeated(MemorySegment topk, long first, int k, int peer) {
        for (int earlier = 0; earlier < k; earlier++) {
            long expert = topk.get(LONG, first + 8L * earlier);
            if (expert >= 0 && expert / numLocalExperts == peer) {
                return true;
            }
        }
        return false;
    }

    /** Counts the selections of a token that nobody is sent. */
    private void count(MemorySegment topk, long first, int numTopk, int peer) {
        for (int k = 0; k < numTopk; k++) {
            long expert = topk.get(LONG, first + 8L * k);
            if (expert >= 0 && expert / numLocalExperts == peer) {
                counts[(int) expert]++;
            }
        }
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
        RowMath.castFp8(x.segment(), from, wire, 0, wire, scales, hidden, powerOfTwo);
    }

    private void putRow(
            LowLatencyDispatchPlan plan, int epoch, int token, int peer, RowFormat format) {
        MemorySegment topk = plan.topkIdx().segment();
        int numTopk = (int) plan.topkIdx().size(1);
        long first = 8L * token * numTopk;
        MemorySegment weights = plan.topkWeights() == null ? null : plan.topkWeights().segment();
        MemorySegment to = rdma.of(peer);
        int row = numRows[peer]++;
        int tag = CallWord.tag(numSelections[peer], token);
        long slot = layout.dispatchRow(epoch & 1, rank, token, format, numTopk);
        MemorySegment.copy(wire, 0, to, slot, format.dataBytes());
        // What orders the row is the header, which comes last.
        long flag = layout.dispatchFlag(epoch & 1, rank, row, numTopk);
        for (int k = 0; k < numTopk; k++) {
            long expert = topk.get(LONG, first + 8L * k);
            int selection = CallWord.NO_SELECTION;
            if (expert >= 0 && expert / numLocalExperts == peer) {
                int order = counts[(int) expert]++;
                selection = CallWord.selection((int) expert % numLocalExperts, order);
                numSelections[peer]++;
            }
            int weight = weights == null ? 0 : weights.get(INT, first / 2 + 4L * k);
            DispatchFlagWord.EPOCH.set(to, flag, k, epoch);
            DispatchFlagWord.SELECTION.set(to, flag, k, selection);
            DispatchFlagWord.WEIGHT.set(to, flag, k, weight);
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
        if (bad >= 0) {
            long value = plan.topkIdx().segment().get(LONG, 8 * bad);
            putStatus(peer, epoch, (int) (bad / numTopk), (int) (bad % numTopk), value);
            headers.announce(peer, epoch, FaultCode.EXPERT_OUT_OF_RANGE.value());
        } else if (crowded >= 0) {
            putStatus(peer, epoch, 0, crowded, counts[crowded]);
            headers.announce(peer, epoch, FaultCode.SELECTED_TOO_OFTEN.value());
        } else {
            putStatus(peer, epoch, 0, 0, 0);
            headers.announce(peer, epoch, FaultCode.OK.value());
        }
    }

    private void putStatus(int peer, int epoch, int token, int k, long value) {
        headers.put(peer, epoch, DispatchWord.STATUS_TOKEN, token);
        headers.put(peer, epoch, DispatchWord.STATUS_K, k);
        headers.putLong(peer, epoch, DispatchWord.STATUS_VALUE_LOW, value);
    }
}
