package io.deepep.host;

import io.deepep.Communicator;
import io.deepep.EpTopology;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.BitSet;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * One rank's NVL and RDMA memory together with its peers'. Memory is freed when the last rank that
 * can reach it has closed, so that ranks may close in any order. A rank that never closes gives up
 * its share when its heaps are unreachable.
 */
public final class HostHeaps implements AutoCloseable {
    private final HostHeap nvl;
    private final HostHeap rdma;
    private final HostDoorbell doorbell;
    private final Meetings meetings;
    private final HeapLease lease;

    private HostHeaps(
            HostHeap nvl,
            HostHeap rdma,
            HostDoorbell doorbell,
            Meetings meetings,
            HeapLease lease) {
        this.nvl = nvl;
        this.rdma = rdma;
        this.doorbell = doorbell;
        this.meetings = meetings;
        this.lease = lease;
    }

    /** How memory is shared between ranks that have it and new ones. */
    interface Meetings {
        /** Collective. Must not refer to heaps. */
        void meet(Communicator communicator, BitSet newRanks, Duration timeout);
    }

    /**
     * One rank's heaps.
     *
     * @param nvl the NVL memory of every rank, null where it is out of reach
     * @param rdma the RDMA memory of every rank
     * @param meetings with ranks that come later
     * @param release gives up this rank's share of the memory; called once, by whatever thread
     */
    static HostHeaps of(
            int rank,
            MemorySegment[] nvl,
            MemorySegment[] rdma,
            HostDoorbell[] doorbells,
            Meetings meetings,
            Runnable release) {
        HeapLease lease = new HeapLease(rank, release);
        return new HostHeaps(
                new HostHeap(rank, nvl, doorbells, lease),
                new HostHeap(rank, rdma, doorbells, lease),
                doorbells[rank],
                meetings,
                lease);
    }

    /** What each rank shows the others; rank 0's group is everybody's. */
    private record Share(MemorySegment nvl, MemorySegment rdma, HostDoorbell doorbell) {}

    /**
     * The memory of a whole group, freed by the last rank.
     *
     * @param shares by rank; a new rank takes over that of the rank whose place it takes
     */
    private record SharedGroup(
            Arena arena, AtomicInteger users, AtomicReferenceArray<Share> shares) {
        SharedGroup(int numRanks) {
            this(
                    Arena.ofShared(),
                    new AtomicInteger(numRanks),
                    new AtomicReferenceArray<>(numRanks));
        }

        void release() {
            if (users.decrementAndGet() == 0) {
                arena.close();
            }
        }

        /** Shows this group's memory to new ranks: collective. */
        void meet(Communicator communicator, BitSet newRanks, Duration timeout) {
            communicator.exchangeReferences(this, timeout);
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
        BitSet all = new BitSet();
        all.set(0, topology.numRanks());
        return open(communicator, topology, nvlBytes, rdmaBytes, all, timeout);
    }

    /**
     * The same as one of {@code newRanks}, while those that have heaps {@link #admit} them.
     *
     * @param newRanks all, if nobody has heaps yet
     */
    public static HostHeaps open(
            Communicator communicator,
            EpTopology topology,
            long nvlBytes,
            long rdmaBytes,
            BitSet newRanks,
            Duration timeout) {
        if (!communicator.isInProcess()) {
            return ProcessHeaps.open(
                    communicator, topology, nvlBytes, rdmaBytes, newRanks, timeout);
        }
        return newRanks.cardinality() == topology.numRanks()
                ? openInProcess(communicator, topology, nvlBytes, rdmaBytes, timeout)
                : joinInProcess(communicator, topology, newRanks, timeout);
    }

    /**
     * Takes in the memory of new ranks, in the place of that of ranks which are gone: collective
     * with their {@link #open}. What was handed out of the memory of those shows that of the new
     * ranks from here on. Nobody may be in a call.
     */
    public void admit(Communicator communicator, BitSet newRanks, Duration timeout) {
        meetings.meet(communicator, newRanks, timeout);
    }

    private static HostHeaps openInProcess(
            Communicator communicator,
            EpTopology topology,
            long nvlBytes,
            long rdmaBytes,
            Duration timeout) {
        SharedGroup group = meetGroup(communicator, topology, timeout);
        try {
            Share share =
                    new Share(
                            HostMemory.allocate(group.arena(), nvlBytes),
                            HostMemory.allocate(group.arena(), rdmaBytes),
                            new HostDoorbell());
            group.shares().set(topology.rank(), share);
            communicator.barrier(timeout);
            return of(topology, group);
        } catch (RuntimeException | Error failure) {
            // A rank that fails here will not close; the memory of the others must not wait for it.
            group.release();
            throw failure;
        }
    }

    /** The others hold the memory meanwhile, and close no heaps while they meet. */
    private static HostHeaps joinInProcess(
            Communicator communicator, EpTopology topology, BitSet newRanks, Duration timeout) {
        SharedGroup group =
                (SharedGroup)
                        communicator
                                .exchangeReferences(communicator, timeout)
                                .get(newRanks.nextClearBit(0));
        group.users().incrementAndGet();
        return of(topology, group);
    }

    /** Rank 0's, of which every rank has a share from here on. */
    @SuppressWarnings("ReferenceEquality") // which one it is, not what it holds
    private static SharedGroup meetGroup(
            Communicator communicator, EpTopology topology, Duration timeout) {
        SharedGroup mine = new SharedGroup(topology.numRanks());
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

    private static HostHeaps of(EpTopology topology, SharedGroup group) {
        int numRanks = topology.numRanks();
        MemorySegment[] nvl = new MemorySegment[numRanks];
        MemorySegment[] rdma = new MemorySegment[numRanks];
        HostDoorbell[] doorbells = new HostDoorbell[numRanks];
        for (int peer = 0; peer < numRanks; peer++) {
            Share share = group.shares().get(peer);
            boolean sameNode = peer / topology.numNvlRanks() == topology.rdmaRank();
            nvl[peer] = sameNode ? share.nvl() : null;
            rdma[peer] = share.rdma();
            doorbells[peer] = share.doorbell();
        }
        return of(topology.rank(), nvl, rdma, doorbells, group::meet, group::release);
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
