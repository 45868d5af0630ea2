package io.deepep.host;

import io.deepep.EpTopology;
import io.deepep.spi.HeapRanks;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.function.Consumer;

/**
 * One rank's NVL and RDMA memory together with its peers'. Memory is freed when the last rank that
 * can reach it has closed, so that ranks may close in any order. A rank that never closes gives up
 * its share when its heaps are unreachable.
 */
public final class HostHeaps implements AutoCloseable {
    private final HostHeap nvl;
    private final HostHeap rdma;
    private final HostDoorbell doorbell;
    private final Consumer<HeapRanks> meeting;
    private final HeapLease lease;

    private HostHeaps(
            HostHeap nvl,
            HostHeap rdma,
            HostDoorbell doorbell,
            Consumer<HeapRanks> meeting,
            HeapLease lease) {
        this.nvl = nvl;
        this.rdma = rdma;
        this.doorbell = doorbell;
        this.meeting = meeting;
        this.lease = lease;
    }

    /**
     * One rank's heaps.
     *
     * @param nvl the NVL memory of every rank, null where it is out of reach
     * @param rdma the RDMA memory of every rank
     * @param meeting meets ranks that come later; must not refer to heaps
     * @param release gives up this rank's share of the memory; called once, by whatever thread
     */
    static HostHeaps of(
            int rank,
            MemorySegment[] nvl,
            MemorySegment[] rdma,
            HostDoorbell[] doorbells,
            Consumer<HeapRanks> meeting,
            Runnable release) {
        HeapLease lease = new HeapLease(rank, release);
        return new HostHeaps(
                new HostHeap(rank, nvl, doorbells, lease),
                new HostHeap(rank, rdma, doorbells, lease),
                doorbells[rank],
                meeting,
                lease);
    }

    /** The memory of a rank that is a thread, and what wakes it. */
    private record Share(
            Arena arena, MemorySegment nvl, MemorySegment rdma, HostDoorbell doorbell) {
        static Share allocate(long nvlBytes, long rdmaBytes) {
            Arena arena = Arena.ofShared();
            try {
                return new Share(
                        arena,
                        HostMemory.allocate(arena, nvlBytes),
                        HostMemory.allocate(arena, rdmaBytes),
                        new HostDoorbell());
            } catch (RuntimeException | Error failure) {
                arena.close();
                throw failure;
            }
        }

        void free() {
            arena.close();
        }
    }

    /**
     * Allocates this rank's memory and meets the peers: collective. As one of several new ranks,
     * while those that have heaps {@link #admit} them.
     *
     * @throws io.deepep.error.DeepEpUnavailableException on all ranks, if one cannot reach the
     *     memory of another process
     */
    public static HostHeaps open(HeapRanks ranks, long nvlBytes, long rdmaBytes) {
        if (!ranks.communicator().isInProcess()) {
            return ProcessHeaps.open(ranks, nvlBytes, rdmaBytes);
        }
        ThreadMemory<Share> memory =
                ThreadMemory.open(ranks, () -> Share.allocate(nvlBytes, rdmaBytes), Share::free);
        EpTopology topology = ranks.topology();
        int numRanks = topology.numRanks();
        MemorySegment[] nvl = new MemorySegment[numRanks];
        MemorySegment[] rdma = new MemorySegment[numRanks];
        HostDoorbell[] doorbells = new HostDoorbell[numRanks];
        for (int peer = 0; peer < numRanks; peer++) {
            Share share = memory.of(peer);
            boolean sameNode = peer / topology.numNvlRanks() == topology.rdmaRank();
            nvl[peer] = sameNode ? share.nvl() : null;
            rdma[peer] = share.rdma();
            doorbells[peer] = share.doorbell();
        }
        return of(topology.rank(), nvl, rdma, doorbells, memory::meet, memory::release);
    }

    /**
     * Takes in the memory of new ranks, in the place of that of ranks which are gone: collective
     * with their {@link #open}. What was handed out of the memory of those shows that of the new
     * ranks from here on. Nobody may be in a call.
     */
    public void admit(HeapRanks ranks) {
        meeting.accept(ranks);
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

    /**
     * Runs {@code action} when nobody can reach these heaps or their memory any more, closed or
     * not.
     *
     * @param action must not refer to them
     */
    public void whenUnreachable(Runnable action) {
        lease.whenUnreachable(action);
    }

    @Override
    public void close() {
        lease.close();
    }
}
