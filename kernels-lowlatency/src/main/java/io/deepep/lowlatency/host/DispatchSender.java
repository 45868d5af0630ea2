package io.deepep.lowlatency.host;

import io.deepep.Fp8E4m3;
import io.deepep.LowLatencyDispatchRequest;
import io.deepep.LowLatencyFormat;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.host.HostContext;
import io.deepep.host.HostHeap;
import io.deepep.host.RowMath;
import io.deepep.lowlatency.LowLatencyHeader;
import io.deepep.lowlatency.LowLatencyLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/**
 * The send half of a dispatch: each token once to every rank that holds one of its experts, then
 * one flag for each rank.
 */
final class DispatchSender {
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;

    private final HostLowLatencyKernels kernels;
    private final LowLatencyLayout layout;
    private final HostHeap rdma;
    private final Peers peers;
    private final int rank;
    private final int numExperts;
    private final int numLocalExperts;
    private final int hidden;
    private final int[] numRows;
    private final int[] selections;
    private final long[] headerFields = new long[LowLatencyHeader.NUM_FIELDS];

    /** One row as it travels, so that it is cast once however many ranks get it. */
    private final MemorySegment wire;

    DispatchSender(
            HostLowLatencyKernels kernels,
            HostContext context,
            LowLatencyLimits limits,
            LowLatencyLayout layout,
            Peers peers,
            MemorySegment wire) {
        this.kernels = kernels;
        this.layout = layout;
        this.rdma = context.rdma();
        this.peers = peers;
        this.rank = context.topology().rank();
        this.numExperts = limits.numExperts();
        this.numLocalExperts = limits.numLocalExperts(peers.count());
        this.hidden = limits.hidden();
        this.numRows = new int[peers.count()];
        this.selections = new int[numExperts];
        this.wire = wire;
    }

    /** Sends and returns the epoch of the dispatch. */
    long send(LowLatencyDispatchRequest request) {
        int numTokens = (int) request.x().size(0);
        int numTopk = (int) request.topkIdx().size(1);
        boolean weighted = request.topkWeights() != null;
        long epoch = kernels.openDispatch(numTokens, numTopk, request.format(), weighted);
        int parity = (int) (epoch & 1);
        MemorySegment sent = kernels.bank(parity).sentTopkIdx;
        MemorySegment.copy(request.topkIdx().segment(), 0, sent, 0, 8L * numTokens * numTopk);
        boolean[] reached = kernels.bank(parity).reached;
        // The slots are free once every receiver has taken the dispatch before the last out of
        // them. Pairs with the signal in DispatchReceiver.acknowledge.
        peers.awaitSlots(layout.dispatchAcks(), epoch - 2, "low-latency dispatch.slots", reached);
        Arrays.fill(numRows, 0);
        Arrays.fill(selections, 0);
        Arrays.fill(headerFields, 0);
        headerFields[LowLatencyHeader.FORMAT] =
                LowLatencyHeader.formatCode(request.format(), weighted);
        headerFields[LowLatencyHeader.NUM_TOPK] = numTopk;
        if (checkTopk(request.topkIdx().segment(), numTokens, numTopk)) {
            for (int token = 0; token < numTokens; token++) {
                sendToken(request, parity, token, numTopk, reached);
            }
        }
        System.arraycopy(numRows, 0, kernels.bank(parity).sentRows, 0, numRows.length);
        announce(epoch, parity, reached);
        return epoch;
    }

    /** Counts the selections of each expert; none at all if the routing is not valid. */
    private boolean checkTopk(MemorySegment topk, int numTokens, int numTopk) {
        for (int token = 0; token < numTokens; token++) {
            for (int k = 0; k < numTopk; k++) {
                long expert = topk.get(LONG, 8L * ((long) token * numTopk + k));
                if (expert < -1 || expert >= numExperts) {
                    reject(token, k, expert);
                    return false;
                }
                if (expert >= 0) {
                    selections[(int) expert]++;
                }
            }
        }
        return true;
    }

    private void reject(int token, int k, long expert) {
        Arrays.fill(selections, 0);
        headerFields[LowLatencyHeader.STATUS] = LowLatencyHeader.STATUS_TOPK_RANGE;
        headerFields[LowLatencyHeader.DETAIL] = token;
        headerFields[LowLatencyHeader.DETAIL + 1] = k;
        headerFields[LowLatencyHeader.DETAIL + 2] = expert;
    }

    private void sendToken(
            LowLatencyDispatchRequest request,
            int parity,
            int token,
            int numTopk,
            boolean[] reached) {
        MemorySegment topk = request.topkIdx().segment();
        long first = 8L * token * numTopk;
        long rowBytes = 0;
        for (int k = 0; k < numTopk; k++) {
            long expert = topk.get(LONG, first + 8L * k);
            if (expert < 0) {
                continue;
            }
            int peer = (int) expert / numLocalExperts;
            if (!reached[peer] || isRepeated(topk, first, k, peer)) {
                continue;
            }
            rowBytes = rowBytes != 0 ? rowBytes : packRow(request, token);
            putRow(request, token, parity, peer, rowBytes);
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

    private long packRow(LowLatencyDispatchRequest request, int token) {
        Tensor x = request.x();
        long from = 2L * x.stride(0) * token;
        if (!request.format().isFp8()) {
            MemorySegment.copy(x.segment(), from, wire, 0, 2L * hidden);
            return 2L * hidden;
        }
        boolean powerOfTwo = request.format() != LowLatencyFormat.FP8;
        RowMath.castFp8(x.segment(), from, wire, 0, wire, hidden, hidden, powerOfTwo);
        return hidden + 4L * (hidden / Fp8E4m3.CHANNELS_PER_SCALE);
    }

    private void putRow(
            LowLatencyDispatchRequest request, int token, int parity, int peer, long rowBytes) {
        MemorySegment topk = request.topkIdx().segment();
        int numTopk = (int) request.topkIdx().size(1);
        long first = 8L * token * numTopk;
        MemorySegment to = rdma.of(peer);
        long slot = layout.dispatchRows().at(parity, rank, numRows[peer]++);
        MemorySegment.copy(wire, 0, to, slot, rowBytes);
        long selection = slot + layout.selectionOffset();
        to.set(INT, selection, token);
        for (int k = 0; k < numTopk; k++) {
            long expert = topk.get(LONG, first + 8L * k);
            boolean local = expert >= 0 && expert / numLocalExperts == peer;
            to.set(INT, selection + 4 + 4L * k, local ? (int) expert % numLocalExperts : -1);
        }
        if (request.topkWeights() != null) {
            MemorySegment.copy(
                    request.topkWeights().segment(),
                    4L * token * numTopk,
                    to,
                    selection + 4 + 4L * numTopk,
                    4L * numTopk);
        }
    }

    private void announce(long epoch, int parity, boolean[] reached) {
        for (int peer = 0; peer < peers.count(); peer++) {
            if (!reached[peer]) {
                continue;
            }
            MemorySegment to = rdma.of(peer);
            long header = layout.dispatchHeaders().at(parity, rank);
            headerFields[LowLatencyHeader.NUM_ROWS] = numRows[peer];
            for (int field = 0; field < LowLatencyHeader.NUM_FIELDS; field++) {
                to.set(LONG, header + LowLatencyHeader.fieldOffset(field), headerFields[field]);
            }
            long counts = header + LowLatencyHeader.selectionsOffset(0);
            MemorySegment.copy(selections, 0, to, INT, counts, numExperts);
            // release; pairs with the acquire in DispatchReceiver.receive.
            rdma.signal(peer, layout.dispatchFlags().at(parity, rank), epoch);
        }
    }
}
