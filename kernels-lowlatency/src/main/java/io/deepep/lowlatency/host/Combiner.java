package io.deepep.lowlatency.host;

import io.deepep.LowLatencyCombineRequest;
import io.deepep.LowLatencyLimits;
import io.deepep.Tensor;
import io.deepep.host.HostContext;
import io.deepep.host.HostHeap;
import io.deepep.host.RowMath;
import io.deepep.lowlatency.LogFmt10;
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

    private final LowLatencyLayout layout;
    private final HostHeap rdma;
    private final Peers peers;
    private final int rank;
    private final int numLocalExperts;
    private final int hidden;
    private final boolean[] reachable;
    private final boolean[] present;
    private final float[] sum;
    private final float[] weights;
    private final long[] slots;

    /** This rank's memory, once for each selection. */
    private final MemorySegment[] sources;

    private long epoch;
    private long received;

    Combiner(HostContext context, LowLatencyLimits limits, LowLatencyLayout layout, Peers peers) {
        this.layout = layout;
        this.rdma = context.rdma();
        this.peers = peers;
        this.rank = context.topology().rank();
        this.numLocalExperts = limits.numLocalExperts(peers.count());
        this.hidden = limits.hidden();
        this.reachable = new boolean[peers.count()];
        this.present = new boolean[peers.count()];
        this.sum = new float[hidden];
        this.weights = new float[limits.maxTopk()];
        this.slots = new long[limits.maxTopk()];
        this.sources = new MemorySegment[limits.maxTopk()];
        Arrays.fill(sources, rdma.local());
    }

    void reset() {
        epoch = 0;
        received = 0;
    }

    /** Sends and returns the epoch of the combine. */
    long send(LowLatencyCombineRequest request) {
        DispatchBank bank = ((HostLowLatencyHandle) request.handle()).receivedBank();
        if (epoch - received >= 2) {
            throw new IllegalStateException(
                    "two combines wait for their receive half; run a receive hook first");
        }
        checkTopk(request.topkIdx());
        epoch++;
        int parity = (int) (epoch & 1);
        for (int owner = 0; owner < peers.count(); owner++) {
            // Pairs with the signal in receive: the owner has summed what lay in the slots of this
            // parity.
            reachable[owner] =
                    peers.await(
                            layout.combineAcks(),
                            layout.combineAcks().at(owner),
                            epoch - 2,
                            owner,
                            "low-latency combine.slots");
        }
        for (int owner = 0; owner < peers.count(); owner++) {
            if (!reachable[owner]) {
                continue;
            }
            for (int expert = 0; expert < numLocalExperts; expert++) {
                sendRows(request, bank, parity, owner, expert);
            }
            // release; pairs with the acquire in receive.
            rdma.signal(owner, layout.combineFlags().at(parity, rank), epoch);
        }
        return epoch;
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
                LogFmt10.encodeRow(from, at, to, slot, hidden);
            } else {
                MemorySegment.copy(from, at, to, slot, 2L * hidden);
            }
        }
    }

    void receive(long combineEpoch, LowLatencyCombineRequest request, Tensor out) {
        int parity = (int) (combineEpoch & 1);
        received = combineEpoch;
        awaitRanks(combineEpoch, parity, request.waitCostStats());
        int numTokens = (int) out.size(0);
        for (int token = 0; token < numTokens; token++) {
            sumToken(request, parity, token);
            RowMath.storeBf16(sum, out.segment(), 2L * out.stride(0) * token, hidden);
        }
        for (int sender = 0; sender < peers.count(); sender++) {
            // release; pairs with the acquire in send.
            rdma.signal(sender, layout.combineAcks().at(rank), combineEpoch);
        }
    }

    private void awaitRanks(long combineEpoch, int parity, Tensor waitCostStats) {
        long start = System.nanoTime();
        for (int sender = 0; sender < peers.count(); sender++) {
            // acquire; pairs with the release in send.
            present[sender] =
                    peers.await(
                            layout.combineFlags(),
                            layout.combineFlags().at(parity, sender),
                            combineEpoch,
                            sender,
                            "low-latency combine.rows");
            if (waitCostStats != null) {
                MemorySegment stats = waitCostStats.segment();
                stats.set(
                        LONG,
                        8L * sender,
                        stats.get(LONG, 8L * sender) + System.nanoTime() - start);
            }
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
            if (expert >= 0 && present[(int) (expert / numLocalExperts)]) {
                weights[count] = given.get(FLOAT, 4 * selection);
                slots[count++] = layout.combineRows().at(parity, token, k);
            }
        }
        RowMath.clear(sum, hidden);
        if (request.logFmt()) {
            for (int i = 0; i < count; i++) {
                LogFmt10.addScaledRow(sum, weights[i], rdma.local(), slots[i], hidden);
            }
        } else {
            RowMath.addScaledBf16(sum, weights, sources, slots, count, hidden);
        }
    }
}
