package io.deepep.buffer.memory;

import io.deepep.Communicator;
import io.deepep.EpTopology;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.PeerAccess;
import io.deepep.cuda.memory.VirtualMemory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * A symmetric heap of one rank (its NVL or RDMA buffer), and its peers' heaps at the addresses of
 * this rank's GPU.
 *
 * <p>Ranks that are threads of one process use each other's addresses directly; their memory is
 * unmapped when the last rank has closed, because a peer's kernel may still read it. It is virtual
 * memory, because freeing plain device memory waits for every kernel of the GPU, even for a kernel
 * of another buffer that waits for the rank that is freeing. Between processes see {@link
 * CudaProcessHeaps}.
 */
public final class CudaHeaps implements AutoCloseable {
    private final int rank;
    private final List<Long> addresses;
    private final Meetings meetings;
    private final Runnable release;
    private boolean closed;

    /**
     * Heaps that are open.
     *
     * @param addresses of every rank's; 0 for those out of reach
     * @param meetings with ranks that come later, null if none can
     * @param release gives up what is open
     */
    CudaHeaps(int rank, List<Long> addresses, Meetings meetings, Runnable release) {
        this.rank = rank;
        this.addresses = List.copyOf(addresses);
        this.meetings = meetings;
        this.release = release;
    }

    /** How memory is shared between ranks that have it and new ones: collective. */
    @FunctionalInterface
    interface Meetings {
        void meet(Ranks ranks);
    }

    /**
     * The ranks that share heaps.
     *
     * @param newRanks the ranks that have no heaps yet; the others {@link #admit} them
     * @param timeout how long to wait for the other ranks
     */
    public record Ranks(
            Communicator communicator, EpTopology topology, BitSet newRanks, Duration timeout) {
        /** Ranks that are all new. */
        public Ranks(Communicator communicator, EpTopology topology, Duration timeout) {
            this(communicator, topology, all(topology), timeout);
        }

        private static BitSet all(EpTopology topology) {
            BitSet all = new BitSet();
            all.set(0, topology.numRanks());
            return all;
        }

        boolean allNew() {
            return newRanks.cardinality() == topology.numRanks();
        }

        boolean isNew() {
            return newRanks.get(topology.rank());
        }
    }

    /** The ranks whose memory a rank reaches. */
    public enum Reach {
        /** The ranks of its node. */
        NODE,
        /** All ranks, which are on one host or in one NVLink domain. */
        GROUP;

        /** Whether these are more than one host has. */
        boolean isAcrossHosts(Ranks ranks) {
            int size = this == GROUP ? ranks.topology().numRanks() : ranks.topology().numNvlRanks();
            return size > ranks.communicator().localSize();
        }

        public boolean includes(EpTopology topology, int peer) {
            return this == GROUP || topology.withRank(peer).rdmaRank() == topology.rdmaRank();
        }
    }

    /**
     * All ranks' memory, closed by the last.
     *
     * @param memories by rank; a new rank takes over that of the rank whose place it takes
     */
    private record Group(AtomicReferenceArray<VirtualMemory> memories, AtomicInteger users) {
        Group(int numRanks) {
            this(new AtomicReferenceArray<>(numRanks), new AtomicInteger(numRanks));
        }

        void release() {
            if (users.decrementAndGet() == 0) {
                for (int rank = 0; rank < memories.length(); rank++) {
                    if (memories.get(rank) != null) {
                        memories.get(rank).close();
                    }
                }
            }
        }

        /** Shows this group to new ranks. */
        void meet(Ranks ranks) {
            ranks.communicator().exchangeReferences(this, ranks.timeout());
        }
    }

    /**
     * Opens heaps of ranks that all reach each other; see {@link #open(Ranks, CudaContext, long,
     * Reach)}.
     *
     * @throws io.deepep.error.DeepEpUnavailableException on every rank, if their processes cannot
     *     share device memory
     */
    public static CudaHeaps open(Ranks ranks, CudaContext context, long numBytes) {
        return open(ranks, context, numBytes, Reach.GROUP);
    }

    /**
     * Allocates {@code numBytes}, zeroes them, and meets the peers: collective among all ranks.
     * Peers can reach the memory once all ranks have returned.
     */
    public static CudaHeaps open(Ranks ranks, CudaContext context, long numBytes, Reach reach) {
        if (!ranks.communicator().isInProcess()) {
            return CudaProcessHeaps.open(ranks, context, numBytes, reach);
        }
        return ranks.allNew()
                ? openInProcess(ranks, context, numBytes, reach)
                : joinInProcess(ranks, context, reach);
    }

    /** The others hold the memory meanwhile, and close no heaps while they meet. */
    private static CudaHeaps joinInProcess(Ranks ranks, CudaContext context, Reach reach) {
        EpTopology topology = ranks.topology();
        Group group =
                (Group)
                        ranks.communicator()
                                .exchangeReferences(ranks, ranks.timeout())
                                .get(ranks.newRanks().nextClearBit(0));
        group.users().incrementAndGet();
        try {
            group.memories().get(topology.rank()).clear();
            return in(group, topology, context, reach);
        } catch (RuntimeException | Error failure) {
            group.release();
            throw failure;
        }
    }

    private static CudaHeaps openInProcess(
            Ranks ranks, CudaContext context, long numBytes, Reach reach) {
        int numRanks = ranks.topology().numRanks();
        List<Object> groups =
                ranks.communicator().exchangeReferences(new Group(numRanks), ranks.timeout());
        Group group = (Group) groups.getFirst();
        try {
            VirtualMemory memory =
                    VirtualMemory.allocate(context, numBytes, VirtualMemory.Export.NONE);
            group.memories().set(ranks.topology().rank(), memory);
            memory.clear();
            ranks.communicator().barrier(ranks.timeout());
            return in(group, ranks.topology(), context, reach);
        } catch (RuntimeException | Error failure) {
            // A rank that fails here will not close; the memory of the others must not wait for it.
            group.release();
            throw failure;
        }
    }

    private static CudaHeaps in(
            Group group, EpTopology topology, CudaContext context, Reach reach) {
        List<Long> addresses = new ArrayList<>();
        for (int peer = 0; peer < topology.numRanks(); peer++) {
            boolean within = reach.includes(topology, peer);
            addresses.add(within ? reach(context, group.memories().get(peer)) : 0L);
        }
        return new CudaHeaps(topology.rank(), addresses, group::meet, group::release);
    }

    /** The address of memory of this process, which kernels of {@code context} may use. */
    private static long reach(CudaContext context, VirtualMemory memory) {
        if (!memory.context().device().equals(context.device())) {
            PeerAccess.enable(context, memory.context());
            memory.allowAccess(context);
            context.makeCurrent();
        }
        return memory.address();
    }

    /** Whether {@link #admit} can be called; the same on all ranks. */
    public boolean canAdmit() {
        return meetings != null;
    }

    /**
     * Takes in the memory of new ranks at the addresses of those which are gone: collective with
     * their {@link #open}, while no kernel of this rank runs. Kernels and captured graphs go on
     * with the addresses that they have.
     */
    public void admit(Ranks ranks) {
        meetings.meet(ranks);
    }

    /** Every rank's heap as this GPU sees it; 0 where it does not. */
    public List<Long> addresses() {
        return addresses;
    }

    /** This rank's heap. */
    public long localAddress() {
        return addresses.get(rank);
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            release.run();
        }
    }
}
