package io.deepep.lowlatency.host;

import static io.deepep.spi.FaultPhase.HEADER;
import static io.deepep.spi.FaultPhase.ROWS;
import static io.deepep.spi.FaultPhase.SLOTS;

import io.deepep.LowLatencyLimits;
import io.deepep.Plan;
import io.deepep.Tensor;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.Departure;
import io.deepep.host.HostContext;
import io.deepep.host.HostHeap;
import io.deepep.host.HostWait;
import io.deepep.lowlatency.CallEpoch;
import io.deepep.lowlatency.Kind;
import io.deepep.lowlatency.LowLatencyErrors;
import io.deepep.lowlatency.LowLatencyLayout;
import io.deepep.spi.CallTimeouts;
import io.deepep.spi.FaultPhase;
import io.deepep.spi.Word;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.stream.IntStream;

/** The other ranks as this one sees them: who is masked, and how to wait for those who are not. */
final class Peers {
    private static final System.Logger LOG = System.getLogger(Peers.class.getName());
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;

    private final int rank;
    private final int numExperts;
    private final HostHeap rdma;
    private final LowLatencyLayout layout;
    private final HostWait waiter;
    private CallTimeouts timeouts;
    private final boolean maskTimedOut;
    private final boolean[] masked;
    private final boolean[] pending;

    /** When each was first seen to have begun the call, or was taken for that, or 0. */
    private final long[] begun;

    /** By kind and parity: the epoch of the call that was received last. */
    private final int[][] received = new int[Kind.values().length][2];

    Peers(
            HostContext context,
            LowLatencyLayout layout,
            LowLatencyLimits limits,
            boolean maskTimedOut) {
        int numRanks = context.topology().numRanks();
        this.rank = context.topology().rank();
        this.rdma = context.rdma();
        this.layout = layout;
        this.waiter = context.waiter();
        this.timeouts = waiter.timeouts();
        this.maskTimedOut = maskTimedOut;
        this.masked = new boolean[numRanks];
        this.pending = new boolean[numRanks];
        this.begun = new long[numRanks];
        this.numExperts = limits.numExperts();
    }

    /** How long the waits of a plan's calls may take. */
    CallTimeouts timeouts(Plan plan) {
        return waiter.timeouts().of(plan);
    }

    /** Before each half of a call: how long its waits may take. */
    void allow(CallTimeouts ofCall) {
        timeouts = ofCall;
        waiter.allow(ofCall.startNanos(), ofCall.nanos());
    }

    int count() {
        return masked.length;
    }

    void mask(int peer, boolean on) {
        masked[peer] = on;
    }

    int[] masks() {
        return IntStream.range(0, masked.length).map(peer -> masked[peer] ? 1 : 0).toArray();
    }

    void reset() {
        for (int[] epochs : received) {
            Arrays.fill(epochs, 0);
        }
    }

    /** Tells all ranks that their slots of a call are free: its rows have been taken. */
    void acknowledge(Kind kind, long call) {
        int[] epochs = received[kind.value()];
        epochs[CallEpoch.parity(call)] = CallEpoch.of(call);
        long both = Word.of(epochs[0], epochs[1]);
        for (int source = 0; source < masked.length; source++) {
            // release; pairs with the acquire in awaitSlots. Masked ranks too: they may come back.
            rdma.signal(source, layout.ack(rank, kind), both);
        }
    }

    /**
     * Waits until every peer has taken the last call of the same parity out of its slots; see
     * {@link #awaitHeaders}.
     */
    void awaitSlots(Kind kind, long call, boolean[] free) {
        int before = CallEpoch.beforeLast(CallEpoch.of(call));
        await(SLOTS, kind, before, 0, null, free, null);
    }

    /**
     * Waits until every peer's header of a call is there, of which it stores the first word last:
     * then its rows are. All are looked at in turn, so a late one does not hide that others have
     * come. Another word it stores before its rows; from then on it has as long as a wait within a
     * call may take.
     *
     * <p>Ranks make the same calls. So a peer that has begun the call of the other kind after those
     * which this rank had made when it began this one, but has not begun this one, never will.
     *
     * @param otherCall the first of the other kind that comes after this call
     * @param sentTo the peers that the send half sent to. The others may be back since, but may
     *     have left this rank out as well: they are not waited for
     * @param came receives for each peer whether it came; false if it is masked, or became so now
     *     because it did not come in time
     * @param costs null, or I64 [R] to which the time waited for each peer is added: nothing for
     *     those who were there first
     * @return a peer that makes the other kind of call, or -1
     * @throws DeepEpTimeoutException naming a peer that did not come in time, or makes later calls
     *     already, and is not to be masked
     */
    int awaitHeaders(
            Kind kind, long call, long otherCall, boolean[] sentTo, boolean[] came, Tensor costs) {
        int epoch = CallEpoch.of(call);
        return await(HEADER, kind, epoch, CallEpoch.of(otherCall), sentTo, came, costs);
    }

    private int await(
            FaultPhase what,
            Kind kind,
            int epoch,
            int otherEpoch,
            boolean[] sentTo,
            boolean[] came,
            Tensor costs) {
        int missing = 0;
        for (int peer = 0; peer < masked.length; peer++) {
            came[peer] = false;
            pending[peer] = !masked[peer] && (sentTo == null || sentTo[peer]);
            begun[peer] = 0;
            missing += pending[peer] ? 1 : 0;
        }
        waiter.start();
        long start = 0;
        while (missing > 0) {
            int gone = 0;
            boolean expired = waiter.expired();
            long now = start == 0 ? 0 : System.nanoTime();
            boolean allBegun = now != 0 && what == HEADER && isSomebodyThrough(kind, epoch);
            for (int peer = 0; peer < masked.length; peer++) {
                if (!pending[peer]) {
                    continue;
                }
                int seen = seen(what, kind, epoch, peer);
                if (seen == epoch) {
                    came[peer] = true;
                    noteWait(costs, peer, start);
                } else if (isLate(what, kind, epoch, peer, expired, allBegun, now)
                        || (seen != 0 && CallEpoch.hasReached(seen, epoch))
                        || isGone(what, kind, peer)) {
                    giveUp(what, kind, peer, epoch, seen, start);
                    noteWait(costs, peer, start);
                } else if (what == HEADER
                        && seen(what, kind.other(), otherEpoch, peer) == otherEpoch
                        // Set since, if that peer makes one call after the other.
                        && seen(what, kind, epoch, peer) != epoch) {
                    return peer;
                } else {
                    continue;
                }
                pending[peer] = false;
                gone++;
            }
            missing -= gone;
            if (gone > 0) {
                waiter.progress();
            }
            if (missing > 0) {
                start = start != 0 ? start : System.nanoTime();
                pause();
            }
        }
        return -1;
    }

    /** Waits a little. While the process was stopped, nobody's time has passed. */
    private void pause() {
        long before = waiter.stoppedNanos();
        waiter.pause();
        long stopped = waiter.stoppedNanos() - before;
        for (int peer = 0; stopped > 0 && peer < begun.length; peer++) {
            begun[peer] += begun[peer] != 0 ? stopped : 0;
        }
    }

    /**
     * Whether some rank has received the whole call. It had headers of all, or has given up those
     * that it lacked, and waits for this rank in the next call: if this rank waited for the same
     * ones until the start time-out, it would itself be given up there.
     */
    private boolean isSomebodyThrough(Kind kind, int epoch) {
        for (int peer = 0; peer < masked.length; peer++) {
            if (peer != rank && !masked[peer] && seen(SLOTS, kind, epoch, peer) == epoch) {
                return true;
            }
        }
        return false;
    }

    /**
     * Whether a peer's time is over. One whose beginning this rank has seen has as long as a wait
     * within a call. One that is only taken to have begun has no longer than that, and no longer
     * than the wait for ranks to begin: those that are through wait for this rank in the next call.
     */
    private boolean isLate(
            FaultPhase what,
            Kind kind,
            int epoch,
            int peer,
            boolean expired,
            boolean allBegun,
            long now) {
        if (what != HEADER) {
            return expired;
        }
        int word = Headers.firstStored(kind);
        boolean here = Word.epoch(rdma.flag(layout.word(kind, epoch & 1, peer, word))) == epoch;
        if (begun[peer] == 0 && (here || allBegun)) {
            begun[peer] = now;
        }
        boolean lateWithin = begun[peer] != 0 && now - begun[peer] > timeouts.nanos();
        return lateWithin || (expired && !here);
    }

    /** Whether a peer is known to be gone; an error that says so unless it is to be masked. */
    private boolean isGone(FaultPhase what, Kind kind, int peer) {
        if (waiter.departures().isEmpty()) {
            return false;
        }
        if (!maskTimedOut) {
            waiter.requireNotInVain(peer, errors(kind).phase(what));
        }
        return Departure.of(waiter.departures(), peer) != null;
    }

    /** The epoch of what a peer has stored; if its slots are free, the one that was asked for. */
    private int seen(FaultPhase what, Kind kind, int epoch, int peer) {
        int parity = epoch & 1;
        if (what == HEADER) {
            return Word.epoch(rdma.flag(layout.word(kind, parity, peer, 0)));
        }
        long both = rdma.flag(layout.ack(peer, kind));
        int freed = parity == 0 ? Word.epoch(both) : Word.value(both);
        return CallEpoch.hasReached(freed, epoch) ? epoch : freed;
    }

    private LowLatencyErrors errors(Kind kind) {
        return new LowLatencyErrors(kind, rank, numExperts);
    }

    private void noteWait(Tensor costs, int peer, long start) {
        if (start == 0) {
            return;
        }
        long nanos = System.nanoTime() - start;
        waiter.addWaited(peer, nanos);
        if (costs != null) {
            MemorySegment stats = costs.segment();
            stats.set(LONG, 8L * peer, stats.get(LONG, 8L * peer) + nanos);
        }
    }

    private void giveUp(FaultPhase what, Kind kind, int peer, int epoch, int seen, long start) {
        boolean ahead = seen != 0 && CallEpoch.hasReached(seen, epoch);
        FaultPhase phase = !ahead && begun[peer] != 0 ? ROWS : what;
        LowLatencyErrors ofKind = errors(kind);
        if (!maskTimedOut && ahead) {
            long waited = start == 0 ? 0 : System.nanoTime() - start;
            throw ofKind.tooLate(peer, phase, epoch, seen, waited);
        }
        if (!maskTimedOut) {
            throw ofKind.expired(timeouts, begun[peer] == 0, peer, phase, epoch, seen);
        }
        masked[peer] = true;
        LOG.log(
                System.Logger.Level.WARNING,
                "rank %s masks rank %s: it did not come in %s (expected=%s observed=%s)"
                        .formatted(
                                rank,
                                peer,
                                ofKind.phase(phase),
                                Word.call(epoch),
                                Word.call(seen)));
    }
}
