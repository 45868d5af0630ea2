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
 * can reach it has closed, so that ranks may close in any order.
 */
public final class HostHeaps implements AutoCloseable {
    private final HostHeap nvl;
    private final HostHeap rdma;
    private final HostDoorbell doorbell;
    private final Runnable release;
    private boolean closed;

    HostHeaps(HostHeap nvl, HostHeap rdma, HostDoorbell doorbell, Runnable release) {
        this.nvl = nvl;
        this.rdma = rdma;
        this.doorbell = doorbell;
        this.release = release;
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
        SharedGroup mine =
                new SharedGroup(Arena.ofShared(), new AtomicInteger(topology.numRanks()));
        List<Object> groups = communicator.exchangeReferences(mine, timeout);
        SharedGroup group = (SharedGroup) groups.getFirst();
        if (topology.rank() != 0) {
            mine.arena().close();
        }
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
            return meet(topology, shares, doorbell, group);
        } catch (RuntimeException | Error failure) {
            // A rank that fails here will not close; the memory of the others must not wait for it.
            group.release();
            throw failure;
        }
    }

    private static HostHeaps meet(
            EpTopology topology, List<Share> shares, HostDoorbell doorbell, SharedGroup group) {
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
        return new HostHeaps(
                new HostHeap(topology.rank(), nvl, doorbells),
                new HostHeap(topology.rank(), rdma, doorbells),
                doorbell,
                group::release);
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
        if (!closed) {
            closed = true;
            release.run();
        }
    }
}
