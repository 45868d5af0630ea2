package io.deepep.lowlatency.host;

import io.deepep.EpTopology;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.host.HostContext;
import io.deepep.host.HostHeap;
import io.deepep.host.HostWait;
import io.deepep.spi.Region;

/** The other ranks as this one sees them: who is masked, and how to wait for those who are not. */
final class Peers {
    private static final System.Logger LOG = System.getLogger(Peers.class.getName());

    private final int rank;
    private final HostHeap rdma;
    private final HostWait waiter;
    private final boolean maskTimedOut;
    private final boolean[] masked;

    Peers(HostContext context, boolean maskTimedOut) {
        EpTopology topology = context.topology();
        this.rank = topology.rank();
        this.rdma = context.rdma();
        this.waiter = context.waiter();
        this.maskTimedOut = maskTimedOut;
        this.masked = new boolean[topology.numRanks()];
    }

    int count() {
        return masked.length;
    }

    boolean isMasked(int peer) {
        return masked[peer];
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
     * Waits until {@code peer}'s flag in {@code flags} is at least {@code epoch}; pairs with the
     * signal of the same region at the peer.
     *
     * @return false if the peer is masked, or became so because it did not come in time
     * @throws DeepEpTimeoutException if it did not come in time and is not to be masked
     */
    boolean await(Region flags, long offset, long epoch, int peer, String phase) {
        if (masked[peer]) {
            return false;
        }
        waiter.start();
        long seen = rdma.flag(offset);
        while (seen < epoch) {
            waiter.pause();
            seen = rdma.flag(offset);
            if (seen < epoch && waiter.expired()) {
                return giveUp(flags, epoch, seen, peer, phase);
            }
        }
        return true;
    }

    private boolean giveUp(Region flags, long epoch, long seen, int peer, String phase) {
        if (!maskTimedOut) {
            throw new DeepEpTimeoutException(rank, peer, phase, epoch, seen, waiter.timeoutNanos());
        }
        masked[peer] = true;
        LOG.log(
                System.Logger.Level.WARNING,
                "rank {0} masks rank {1}: it did not come in {2} ({3}: expected={4} observed={5})",
                rank,
                peer,
                phase,
                flags.name(),
                epoch,
                seen);
        return false;
    }
}
