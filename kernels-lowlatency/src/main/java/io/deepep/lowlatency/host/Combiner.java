package io.deepep.lowlatency.host;

import io.deepep.LowLatencyCombineRequest;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.error.RankMismatchException;
import io.deepep.host.HostContext;
import io.deepep.host.HostHeap;
import io.deepep.host.RowMath;
import io.deepep.lowlatency.LogFmt10;
import io.deepep.lowlatency.LowLatencyCombineHeader;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.spi.CallOrderException;
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

    private final LowLatencyLayout layout;
    private final HostHeap rdma;
    private final Peers peers;
    private final int rank;
    private final int numLocalExperts;
    private final int hidden;
    private final boolean[] reachable;
    private final boolean[] came;
    private final LogFmt10 logFmt = new LogFmt10();
    private final float[] sum;
    private final float[] weights;
    private final long[] slots;

    /** This rank's memory, once for each selection. */
    private final MemorySegment[] sources;

    /** By parity: the combine that is sent but not received, or 0. */
    private final long[] unreceived = new long[2];

    /** By parity: the dispatch whose tokens that combine brings home, and who was given them. */
    private final long[] dispatchEpoch = new long[2];

    private final boolean[][] expected;
    private long epoch;

    Combiner(HostContext context, LowLatencyLimits limits, LowLatencyLayout layout, Peers peers) {
        this.layout = layout;
        this.rdma = context.rdma();
        this.peers = peers;
        this.rank = context.topology().rank();
        this.numLocalExperts = limits.numLocalExperts(peers.count());
        this.hidden = limits.hidden();
        this.reachable = new boolean[peers.count()];
        this.came = new boolean[peers.count()];
        this.expected = new boolean[2][peers.count()];
        this.sum = new float[hidden];
        this.weights = new float[limits.maxTopk()];
        this.slots = new long[limits.maxTopk()];
        this.sources = new MemorySegment[limits.maxTopk()];
        Arrays.fill(sources, rdma.local());
    }

    void reset() {
        epoch = 0;
        Arrays.fill(unreceived, 0);
    }

    /** Sends and returns the epoch of the combine. */
    long send(LowLatencyCombineRequest request) {
        DispatchBank bank = ((HostLowLatencyHandle) request.handle()).receivedBank();
        int parity = (int) ((epoch + 1) & 1);
        if (unreceived[parity] != 0) {
            throw new CallOrderException(
                    "combine "
                            + unreceived[parity]
                            + " has been sent but not received; run its receive hook before the"
                            + " second next combine");
        }
        checkTopk(request.topkIdx());
        epoch++;
        unreceived[parity] = epoch;
        dispatchEpoch[parity] = bank.epoch;
        // Kept here, because the bank may hold a later dispatch when this combine is received.
        System.arraycopy(bank.reached, 0, expected[parity], 0, peers.count());
        // The owners have summed what lay in the slots of this parity. Pairs with the signal in
        // acknowledge.
        peers.awaitAll(
                layout.combineAcks(),
                parity,
                epoch - 2,
                "low-latency combine.slots",
                reachable,
                null);
        for (int owner = 0; owner < peers.count(); owner++) {
            if (!reachable[owner]) {
                continue;
            }
            for (int expert = 0; expert < numLocalExperts; expert++) {
                sendRows(request, bank, parity, owner, expert);
            }
            putHeader(request, bank, parity, owner);
            // release; pairs with the acquire in receive.
            rdma.signal(owner, layout.combineFlags().at(parity, rank), epoch);
        }
        return epoch;
    }

    private void putHeader(
            LowLatencyCombineRequest request, DispatchBank bank, int parity, int owner) {
        MemorySegment to = rdma.of(owner);
        long header = layout.combineHeaders().at(parity, rank);
        to.set(LONG, header + LowLatencyCombineHeader.DISPATCH_EPOCH, bank.epoch);
        to.set(LONG, header + LowLatencyCombineHeader.FORMAT, format(request));
        to.set(LONG, header + LowLatencyCombineHeader.HAS_ROWS, bank.present[owner] ? 1 : 0);
    }

    private static long format(LowLatencyCombineRequest request) {
        return request.logFmt()
                ? LowLatencyCombineHeader.ROWS_LOG_FMT
                : LowLatencyCombineHeader.ROWS_BF16;
    }

    private void checkTopk(Tensor topkIdx) {
        MemorySegment topk = topkIdx.segment();
        int numExperts = numLocalExperts * peers.count();
        for (long i = 0; i < topkIdx.numElements(); i++) {
            long expert = topk.get(LONG, 8 * i);
            if (expert < -1 || expert >= numExperts) {
                throw new IllegalArgumentException(
                        "topkIdx["
                                + i / topkIdx.size(1)
                                + "]["
                                + i % topkIdx.size(1)
                                + "]="
                                + expert
                                + " is not in [-1, numExperts="
                                + numExperts
                                + "); combine with the topkIdx that was dispatched");
            }
        }
    }

    private void sendRows(
            LowLatencyCombineRequest request,
            DispatchBank bank,
            int parity,
            int owner,
            int expert) {
        Tensor x = request.x();
        MemorySegment from = x.segment();
        MemorySegment to = rdma.of(owner);
        long range = bank.layoutRange.get(LONG, 8L * ((long) expert * peers.count() + owner));
        int begin = (int) range;
        int end = begin + (int) (range >>> 32);
        for (int row = begin; row < end; row++) {
            long place = 4L * ((long) expert * bank.numSlots + row);
            long slot =
                    layout.combineRows()
                            .at(
                                    parity,
                                    bank.srcInfo.get(INT, place),
                                    bank.srcSelection.get(INT, place));
            long at = 2L * (x.stride(0) * expert + x.stride(1) * row);
            if (request.logFmt()) {
                logFmt.encodeRow(from, at, to, slot, hidden);
            } else {
                MemorySegment.copy(from, at, to, slot, 2L * hidden);
            }
        }
    }

    void receive(long combineEpoch, LowLatencyCombineRequest request, Tensor out) {
        int parity = (int) (combineEpoch & 1);
        unreceived[parity] = 0;
        // acquire; pairs with the release in send.
        peers.awaitAll(
                layout.combineFlags(),
                parity,
                combineEpoch,
                "low-latency combine.rows",
                came,
                request.waitCostStats());
        try {
            checkHeaders(parity, format(request));
            int numTokens = (int) out.size(0);
            for (int token = 0; token < numTokens; token++) {
                sumToken(request, parity, token);
                RowMath.storeBf16(sum, out.segment(), 2L * out.stride(0) * token, hidden);
            }
        } finally {
            // Also after an error that every rank learned of: the slots are free again.
            acknowledge(combineEpoch, parity);
        }
    }

    /** Finds ranks that combine something else, and those that hold no rows for this one. */
    private void checkHeaders(int parity, long format) {
        for (int sender = 0; sender < peers.count(); sender++) {
            if (!came[sender]) {
                continue;
            }
            long dispatch = field(parity, sender, LowLatencyCombineHeader.DISPATCH_EPOCH);
            if (dispatch != dispatchEpoch[parity]) {
                throw RankMismatchException.of(
                        "low-latency combine",
                        "the dispatch that it belongs to",
                        rank,
                        "dispatch " + dispatchEpoch[parity],
                        sender,
                        "dispatch " + dispatch);
            }
            long given = field(parity, sender, LowLatencyCombineHeader.FORMAT);
            if (given != format) {
                throw RankMismatchException.of(
                        "low-latency combine",
                        "format",
                        rank,
                        LowLatencyCombineHeader.formatName(format),
                        sender,
                        LowLatencyCombineHeader.formatName(given));
            }
            came[sender] =
                    expected[parity][sender]
                            && field(parity, sender, LowLatencyCombineHeader.HAS_ROWS) != 0;
        }
    }

    private long field(int parity, int sender, long field) {
        return rdma.local().get(LONG, layout.combineHeaders().at(parity, sender) + field);
    }

    private void acknowledge(long combineEpoch, int parity) {
        for (int sender = 0; sender < peers.count(); sender++) {
            // release; pairs with the acquire in send. Masked ranks too: they may come back.
            rdma.signal(sender, layout.combineAcks().at(parity, rank), combineEpoch);
        }
    }

    private void sumToken(LowLatencyCombineRequest request, int parity, int token) {
        MemorySegment topk = request.topkIdx().segment();
        MemorySegment given = request.topkWeights().segment();
        int numTopk = (int) request.topkIdx().size(1);
        int count = 0;
        for (int k = 0; k < numTopk; k++) {
            long selection = (long) token * numTopk + k;
            long expert = topk.get(LONG, 8 * selection);
            if (expert >= 0 && came[(int) (expert / numLocalExperts)]) {
                weights[count] = given.get(FLOAT, 4 * selection);
                slots[count++] = layout.combineRows().at(parity, token, k);
            }
        }
        RowMath.clear(sum, hidden);
        if (request.logFmt()) {
            for (int i = 0; i < count; i++) {
                logFmt.addScaledRow(sum, weights[i], rdma.local(), slots[i], hidden);
            }
        } else {
            RowMath.addScaledBf16(sum, weights, sources, slots, count, hidden);
        }
    }
}
