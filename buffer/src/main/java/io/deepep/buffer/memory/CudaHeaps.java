package io.deepep.buffer.memory;

import io.deepep.BufferOptions;
import io.deepep.Communicator;
import io.deepep.EpTopology;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.PeerAccess;
import io.deepep.cuda.memory.VirtualMemory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * One symmetric heap of one rank, the NVL or the RDMA buffer, and its peers' as this rank's GPU
 * sees them.
 *
 * <p>Ranks that are threads of one process use each other's addresses directly; their memory is
 * unmapped when the last rank has closed, because a peer's kernel may still read it. Virtual
 * memory, because freeing plain device memory waits for every kernel of the GPU, also for one of
 * another buffer that waits for a rank which is just freeing. Between processes see {@link
 * CudaProcessHeaps}.
 */
public final class CudaHeaps implements AutoCloseable {
    private final int rank;
    private final long numBytes;
    private final List<Long> addresses;
    private final Runnable release;
    private boolean closed;

    /**
     * Heaps that are open.
     *
     * @param addresses of every rank's; 0 for those out of reach
     * @param release gives up what is open
     */
    CudaHeaps(int rank, long numBytes, List<Long> addresses, Runnable release) {
        this.rank = rank;
        this.numBytes = numBytes;
        this.addresses = List.copyOf(addresses);
        this.release = release;
    }

    /**
     * The ranks that share heaps.
     *
     * @param timeout for their meetings
     */
    public record Ranks(Communicator communicator, EpTopology topology, Duration timeout) {
        public static Ranks of(BufferOptions options) {
            return new Ranks(options.communicator(), options.topology(), options.timeout());
        }
    }

    /** Whose memory a rank reaches. */
    public enum Reach {
        /** The ranks of its node. */
        NODE,
        /** All ranks, which are on one host. */
        GROUP;

        public boolean includes(EpTopology topology, int peer) {
            return this == GROUP || topology.withRank(peer).rdmaRank() == topology.rdmaRank();
        }
    }

    /** What each rank shows the others. */
    private record Share(CudaContext context, long address) {}

    /** All ranks' memory, closed by the last. */
    private record Group(Queue<VirtualMemory> memories, AtomicInteger users) {
        Group(int numRanks) {
            this(new ConcurrentLinkedQueue<>(), new AtomicInteger(numRanks));
        }

        void release() {
            if (users.decrementAndGet() == 0) {
                memories.forEach(VirtualMemory::close);
            }
        }
    }

    /**
     * Heaps of ranks that all reach each other; see {@link #open(Ranks, CudaContext, long, Reach)}.
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
        return ranks.communicator().isInProcess()
                ? openInProcess(ranks, context, numBytes, reach)
                : CudaProcessHeaps.open(ranks, context, numBytes, reach);
    }

    @SuppressWarnings("unchecked")
    private static CudaHeaps openInProcess(
            Ranks ranks, CudaContext context, long numBytes, Reach reach) {
        int numRanks = ranks.topology().numRanks();
        List<Object> groups =
                ranks.communicator().exchangeReferences(new Group(numRanks), ranks.timeout());
        Group group = (Group) groups.getFirst();
        VirtualMemory memory = VirtualMemory.allocate(context, numBytes, VirtualMemory.Export.NONE);
        memory.clear();
        group.memories().add(memory);
        List<Share> shares =
                (List<Share>)
                        (List<?>)
                                ranks.communicator()
                                        .exchangeReferences(
                                                new Share(context, memory.address()),
                                                ranks.timeout());
        List<Long> addresses = new ArrayList<>();
        for (int peer = 0; peer < numRanks; peer++) {
            if (!reach.includes(ranks.topology(), peer)) {
                addresses.add(0L);
                continue;
            }
            CudaContext other = shares.get(peer).context();
            if (!other.device().equals(context.device())) {
                PeerAccess.enable(context, other);
                memory.allowAccess(other);
            }
            addresses.add(shares.get(peer).address());
        }
        return new CudaHeaps(ranks.topology().rank(), numBytes, addresses, group::release);
    }

    /** Every rank's heap as this GPU sees it; 0 where it does not. */
    public List<Long> addresses() {
        return addresses;
    }

    /** This rank's heap. */
    public long localAddress() {
        return addresses.get(rank);
    }

    long numBytes() {
        return numBytes;
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            release.run();
        }
    }
}
