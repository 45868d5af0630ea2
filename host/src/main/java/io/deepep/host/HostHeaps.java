package io.deepep.host;

import io.deepep.Communicator;
import io.deepep.EpTopology;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * One rank's NVL and RDMA memory together with its peers'. Memory is freed when the last rank that
 * can reach it has closed, so that ranks may close in any order. A rank that never closes gives up
 * its share when its heaps are unreachable.
 */
public final class HostHeaps implements AutoCloseable {
    private final HostHeap nvl;
    private final HostHeap rdma;
    private final HostDoorbell doorbell;
    private final HeapLease lease;

    private HostHeaps(HostHeap nvl, HostHeap rdma, HostDoorbell doorbell, HeapLease lease) {
        this.nvl = nvl;
        this.rdma = rdma;
        this.doorbell = doorbell;
        this.lease = lease;
    }

    /**
     * One rank's heaps.
     *
     * @param nvl the NVL memory of every rank, null where it is out of reach
     * @param rdma the RDMA memory of every rank
     * @param release gives up this rank's share of the memory; called once, by whatever thread
     */
    static HostHeaps of(
            int rank,
            MemorySegment[] nvl,
            MemorySegment[] rdma,
            HostDoorbell[] doorbells,
            Runnable release) {
        HeapLease lease = new HeapLease(rank, release);
        return new HostHeaps(
                new HostHeap(rank, nvl, doorbells, lease),
                new HostHeap(rank, rdma, doorbells, lease),
                doorbells[rank],
                lease);
    }

    /** What each rank shows the others; rank 0's group is everybody's. */
    private record Share(
            MemorySegment nvl, MemorySegment rdma, HostDoorbell doorbell, SharedGroup group) {}

    /** The arena of a whole group's memory, closed by the last rank. */
    private record SharedGroup(Arena arena, AtomicInteger users) {
        void release() {
            if (users.decrementAndGet() == 0) {
                arena.close();
            }
        }
    }

    /**
     * Allocates this rank's memory and meets the peers: collective.
     *
     * @throws io.deepep.error.DeepEpUnavailableException on all ranks, if one cannot reach the
     *     memory of another process
     */
    public static HostHeaps open(
            Communicator communicator,
            EpTopology topology,
            long nvlBytes,
            long rdmaBytes,
            Duration timeout) {
        return communicator.isInProcess()
                ? openInProcess(communicator, topology, nvlBytes, rdmaBytes, timeout)
                : ProcessHeaps.open(communicator, topology, nvlBytes, rdmaBytes, timeout);
    }

    @SuppressWarnings("unchecked")
    private static HostHeaps openInProcess(
            Communicator communicator,
            EpTopology topology,
            long nvlBytes,
            long rdmaBytes,
            Duration timeout) {
        SharedGroup group = meetGroup(communicator, topology, timeout);
        try {
            HostDoorbell doorbell = new HostDoorbell();
            Share share =
                    new Share(
                            HostMemory.allocate(group.arena(), nvlBytes),
                            HostMemory.allocate(group.arena(), rdmaBytes),
                            doorbell,
                            group);
            List<Share> shares =
                    (List<Share>) (List<?>) communicator.exchangeReferences(share, timeout);
            return meet(topology, shares, group);
        } catch (RuntimeException | Error failure) {
            // A rank that fails here will not close; the memory of the others must not wait for it.
            group.release();
            throw failure;
        }
    }

    /** Rank 0's, of which every rank has a share from here on. */
    @SuppressWarnings("ReferenceEquality") // which one it is, not what it holds
    private static SharedGroup meetGroup(
            Communicator communicator, EpTopology topology, Duration timeout) {
        SharedGroup mine =
                new SharedGroup(Arena.ofShared(), new AtomicInteger(topology.numRanks()));
        SharedGroup group = null;
        try {
            group = (SharedGroup) communicator.exchangeReferences(mine, timeout).getFirst();
            return group;
        } finally {
            if (mine != group) {
                mine.arena().close();
            }
        }
    }

    private static HostHeaps meet(EpTopology topology, List<Share> shares, SharedGroup group) {
        int numRanks = topology.numRanks();
        MemorySegment[] nvl = new MemorySegment[numRanks];
        MemorySegment[] rdma = new MemorySegment[numRanks];
        HostDoorbell[] doorbells = new HostDoorbell[numRanks];
        for (int peer = 0; peer < numRanks; peer++) {
            boolean sameNode = peer / topology.numNvlRanks() == topology.rdmaRank();
            nvl[peer] = sameNode ? shares.get(peer).nvl() : null;
            rdma[peer] = shares.get(peer).rdma();
            doorbells[peer] = shares.get(peer).doorbell();
        }
        return of(topology.rank(), nvl, rdma, doorbells, group::release);
    }

    /** NVL memory: the ranks of this node. */
    public HostHeap nvl() {
        return nvl;
    }

    /** RDMA memory: all ranks. */
    public HostHeap rdma() {
        return rdma;
    }

    /** This rank's doorbell. */
    public HostDoorbell doorbell() {
        return doorbell;
    }

    @Override
    public void close() {
        lease.close();
    }
}
