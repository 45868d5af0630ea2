package io.deepep.buffer.memory;

import io.deepep.EpTopology;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.PeerAccess;
import io.deepep.cuda.memory.VirtualMemory;
import io.deepep.host.ThreadMemory;
import io.deepep.spi.HeapRanks;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

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
    private final Consumer<HeapRanks> meeting;
    private final Runnable release;
    private boolean closed;

    /**
     * Heaps that are open.
     *
     * @param addresses of every rank's; 0 for those out of reach
     * @param meeting meets ranks that come later; null if none can
     * @param release gives up what is open
     */
    CudaHeaps(int rank, List<Long> addresses, Consumer<HeapRanks> meeting, Runnable release) {
        this.rank = rank;
        this.addresses = List.copyOf(addresses);
        this.meeting = meeting;
        this.release = release;
    }

    /** The ranks whose memory a rank reaches. */
    public enum Reach {
        /** The ranks of its node. */
        NODE,
        /** All ranks, which are on one host or in one NVLink domain. */
        GROUP;

        /** Whether these are more than one host has. */
        boolean isAcrossHosts(HeapRanks ranks) {
            int size = this == GROUP ? ranks.topology().numRanks() : ranks.topology().numNvlRanks();
            return size > ranks.communicator().localSize();
        }

        public boolean includes(EpTopology topology, int peer) {
            return this == GROUP || topology.withRank(peer).rdmaRank() == topology.rdmaRank();
        }
    }

    /**
     * Allocates {@code numBytes}, zeroes them, and meets the peers: collective among all ranks.
     * Peers can reach the memory once all ranks have returned.
     *
     * @throws io.deepep.error.DeepEpUnavailableException on every rank, if their processes cannot
     *     share device memory
     */
    public static CudaHeaps open(HeapRanks ranks, CudaContext context, long numBytes, Reach reach) {
        return ranks.communicator().isInProcess()
                ? openInProcess(ranks, context, numBytes, reach)
                : CudaProcessHeaps.open(ranks, context, numBytes, reach);
    }

    private static CudaHeaps openInProcess(
            HeapRanks ranks, CudaContext context, long numBytes, Reach reach) {
        EpTopology topology = ranks.topology();
        ThreadMemory<VirtualMemory> memory =
                ThreadMemory.open(
                        ranks,
                        () -> VirtualMemory.allocate(context, numBytes, VirtualMemory.Export.NONE),
                        VirtualMemory::close);
        try {
            memory.of(topology.rank()).clear();
            List<Long> addresses = new ArrayList<>();
            for (int peer = 0; peer < topology.numRanks(); peer++) {
                boolean within = reach.includes(topology, peer);
                addresses.add(within ? reach(context, memory.of(peer)) : 0L);
            }
            return new CudaHeaps(topology.rank(), addresses, memory::meet, memory::release);
        } catch (RuntimeException | Error failure) {
            // A rank that fails here will not close; the memory of the others must not wait for it.
            memory.release();
            throw failure;
        }
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
        return meeting != null;
    }

    /**
     * Takes in the memory of new ranks at the addresses of those which are gone: collective with
     * their {@link #open}, while no kernel of this rank runs. Kernels and captured graphs go on
     * with the addresses that they have.
     */
    public void admit(HeapRanks ranks) {
        meeting.accept(ranks);
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
