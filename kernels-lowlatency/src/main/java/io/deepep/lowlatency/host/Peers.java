package io.deepep.lowlatency.host;

import io.deepep.EpTopology;
import io.deepep.Tensor;
import io.deepep.error.DeepEpTimeoutException;
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
     * Waits until every peer's flag {@code flags[parity][peer]} is at least {@code epoch}; pairs
     * with the peers' signals of that region. All are looked at in turn, so a late one does not
     * hide that others have come.
     *
     * @param came receives for each peer whether it came; false if it is masked, or became so now
     *     because it did not come in time
     * @param costs null, or I64 [R] to which the time waited for each peer is added: nothing for
     *     those who were there first
     * @throws DeepEpTimeoutException naming a peer that did not come in time and is not to be
     *     masked
     */
    void awaitAll(
            Region flags, int parity, long epoch, String phase, boolean[] came, Tensor costs) {
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
                if (pending[peer] && rdma.flag(flags.at(parity, peer)) >= epoch) {
                    pending[peer] = false;
                    came[peer] = true;
                    arrived++;
                    addCost(costs, peer, start);
                }
            }
            missing -= arrived;
            if (arrived > 0) {
                waiter.progress();
            } else if (waiter.expired()) {
                giveUp(flags, parity, epoch, phase, costs, start);
                return;
            }
            if (missing > 0) {
                start = start != 0 ? start : System.nanoTime();
                waiter.pause();
            }
        }
    }

    private static void addCost(Tensor costs, int peer, long start) {
        if (costs != null && start != 0) {
            MemorySegment stats = costs.segment();
            stats.set(LONG, 8L * peer, stats.get(LONG, 8L * peer) + System.nanoTime() - start);
        }
    }

    private void giveUp(
            Region flags, int parity, long epoch, String phase, Tensor costs, long start) {
        for (int peer = 0; peer < masked.length; peer++) {
            if (!pending[peer]) {
                continue;
            }
            long seen = rdma.flag(flags.at(parity, peer));
            if (!maskTimedOut) {
                throw new DeepEpTimeoutException(
                        rank, peer, phase, epoch, seen, waiter.timeoutNanos());
            }
            masked[peer] = true;
            addCost(costs, peer, start);
            LOG.log(
                    System.Logger.Level.WARNING,
                    "rank {0} masks rank {1}: it did not come in {2} ({3}: expected={4} observed={5})",
                    rank,
                    peer,
                    phase,
                    flags.name(),
                    epoch,
                    seen);
        }
    }
}
