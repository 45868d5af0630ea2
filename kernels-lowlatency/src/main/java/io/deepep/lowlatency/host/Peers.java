package io.deepep.lowlatency.host;

import io.deepep.EpTopology;
import io.deepep.Tensor;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.Departure;
import io.deepep.error.RankMismatchException;
import io.deepep.host.HostContext;
import io.deepep.host.HostHeap;
import io.deepep.host.HostWait;
import io.deepep.spi.Region;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** The other ranks as this one sees them: who is masked, and how to wait for those who are not. */
final class Peers {
    private static final System.Logger LOG = System.getLogger(Peers.class.getName());
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;

    private final int rank;
    private final HostHeap rdma;
    private final HostWait waiter;
    private final boolean maskTimedOut;
    private final boolean[] masked;
    private final boolean[] pending;

    Peers(HostContext context, boolean maskTimedOut) {
        EpTopology topology = context.topology();
        this.rank = topology.rank();
        this.rdma = context.rdma();
        this.waiter = context.waiter();
        this.maskTimedOut = maskTimedOut;
        this.masked = new boolean[topology.numRanks()];
        this.pending = new boolean[topology.numRanks()];
    }

    int count() {
        return masked.length;
    }

    void mask(int peer, boolean on) {
        masked[peer] = on;
    }

    int[] masks() {
        int[] masks = new int[masked.length];
        for (int peer = 0; peer < masks.length; peer++) {
            masks[peer] = masked[peer] ? 1 : 0;
        }
        return masks;
    }

    /**
     * Waits until every peer has acknowledged a call, see {@link #awaitCall}.
     *
     * @param epoch of the call whose slots are wanted again; none if it is not positive
     */
    void awaitSlots(Region acks, long epoch, String phase, boolean[] free) {
        awaitCall(acks, epoch, null, 0, phase, free, null);
    }

    /**
     * Waits until every peer's flag {@code flags[parity][peer]} is at least {@code epoch}; pairs
     * with the peers' signals of that region. All are looked at in turn, so a late one does not
     * hide that others have come.
     *
     * <p>Ranks make the same calls. So a peer that has begun the call of the other kind after those
     * which this rank had made when it began this one, but has not begun this one, never will.
     *
     * @param otherFlags the flags of the other kind of call
     * @param otherEpoch the first epoch of the other kind that comes after this call
     * @param came receives for each peer whether it came; false if it is masked, or became so now
     *     because it did not come in time
     * @param costs null, or I64 [R] to which the time waited for each peer is added: nothing for
     *     those who were there first
     * @return a peer that makes the other kind of call, or -1
     * @throws DeepEpTimeoutException naming a peer that did not come in time and is not to be
     *     masked
     */
    int awaitCall(
            Region flags,
            long epoch,
            Region otherFlags,
            long otherEpoch,
            String phase,
            boolean[] came,
            Tensor costs) {
        int missing = 0;
        for (int peer = 0; peer < masked.length; peer++) {
            came[peer] = false;
            pending[peer] = !masked[peer];
            missing += masked[peer] ? 0 : 1;
        }
        waiter.start();
        long start = 0;
        while (missing > 0) {
            int arrived = 0;
            for (int peer = 0; peer < masked.length; peer++) {
                if (!pending[peer]) {
                    continue;
                }
                if (isSet(flags, peer, epoch)) {
                    pending[peer] = false;
                    came[peer] = true;
                    arrived++;
                    noteWait(costs, peer, start);
                } else if (otherFlags != null
                        && isSet(otherFlags, peer, otherEpoch)
                        // Set since, if that peer makes one call after the other.
                        && !isSet(flags, peer, epoch)) {
                    return peer;
                }
            }
            missing -= arrived;
            if (arrived > 0) {
                waiter.progress();
            } else if (waiter.expired()) {
                giveUp(flags, epoch, phase, costs, start);
                return -1;
            } else if (!waiter.departures().isEmpty()) {
                missing -= giveUpGone(flags, epoch, phase, costs, start);
            }
            if (missing > 0) {
                start = start != 0 ? start : System.nanoTime();
                waiter.pause();
            }
        }
        return -1;
    }

    /** The error for a rank that makes another kind of call than this one. */
    RankMismatchException differentCalls(String mine, int peer, String theirs) {
        return RankMismatchException.of(
                "low-latency mode", "the operation", rank, mine, peer, theirs);
    }

    private boolean isSet(Region flags, int peer, long epoch) {
        return rdma.flag(flags.at(epoch & 1, peer)) >= epoch;
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

    /** Gives up the ranks that are known to be gone; how many. */
    private int giveUpGone(Region flags, long epoch, String phase, Tensor costs, long start) {
        int numGone = 0;
        for (int peer = 0; peer < masked.length; peer++) {
            if (!pending[peer]) {
                continue;
            }
            if (!maskTimedOut) {
                waiter.requireNotInVain(peer, phase);
            } else if (Departure.of(waiter.departures(), peer) != null) {
                mask(flags, epoch, phase, costs, start, peer);
                pending[peer] = false;
                numGone++;
            }
        }
        return numGone;
    }

    private void giveUp(Region flags, long epoch, String phase, Tensor costs, long start) {
        for (int peer = 0; peer < masked.length; peer++) {
            if (!pending[peer]) {
                continue;
            }
            if (!maskTimedOut) {
                long seen = rdma.flag(flags.at(epoch & 1, peer));
                throw new DeepEpTimeoutException(
                        rank, peer, phase, epoch, seen, waiter.timeoutNanos());
            }
            mask(flags, epoch, phase, costs, start, peer);
        }
    }

    private void mask(Region flags, long epoch, String phase, Tensor costs, long start, int peer) {
        masked[peer] = true;
        noteWait(costs, peer, start);
        LOG.log(
                System.Logger.Level.WARNING,
                "rank {0} masks rank {1}: it did not come in {2} ({3}: expected={4} observed={5})",
                rank,
                peer,
                phase,
                flags.name(),
                epoch,
                rdma.flag(flags.at(epoch & 1, peer)));
    }
}
