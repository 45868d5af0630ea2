package io.deepep.buffer;

import io.deepep.BufferOptions;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaMemory;
import io.deepep.cuda.PeerAccess;
import io.deepep.normal.cuda.CudaNormalKernels;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The symmetric heap of ranks that are threads of one process: plain device memory, peers'
 * addresses used directly. Freed when the last rank has closed, because a peer's kernel may still
 * read it.
 */
final class CudaHeaps implements AutoCloseable {
    private final int rank;
    private final long numBytes;
    private final List<Long> addresses;
    private final int ranksOnDevice;
    private final Group group;
    private boolean closed;

    private CudaHeaps(
            int rank, long numBytes, List<Long> addresses, int ranksOnDevice, Group group) {
        this.rank = rank;
        this.numBytes = numBytes;
        this.addresses = addresses;
        this.ranksOnDevice = ranksOnDevice;
        this.group = group;
    }

    /** What each rank shows the others. */
    private record Share(CudaContext context, long address) {}

    /** All ranks' memory and contexts, closed by the last. */
    private record Group(
            Queue<CudaNormalKernels> kernels,
            Queue<CudaMemory> memories,
            Queue<CudaContext> contexts,
            AtomicInteger users) {
        Group(int numRanks) {
            this(
                    new ConcurrentLinkedQueue<>(),
                    new ConcurrentLinkedQueue<>(),
                    new ConcurrentLinkedQueue<>(),
                    new AtomicInteger(numRanks));
        }

        void release() {
            if (users.decrementAndGet() == 0) {
                kernels.forEach(CudaNormalKernels::close);
                memories.forEach(CudaMemory::close);
                contexts.forEach(CudaContext::close);
            }
        }
    }

    /** Allocates, zeroes, and meets the peers: collective. */
    @SuppressWarnings("unchecked")
    static CudaHeaps open(BufferOptions options, CudaContext context) {
        int numRanks = options.topology().numRanks();
        List<Object> groups =
                options.communicator().exchangeReferences(new Group(numRanks), options.timeout());
        Group group = (Group) groups.getFirst();
        CudaMemory memory = CudaMemory.allocate(context, options.numNvlBytes());
        memory.clear();
        group.memories().add(memory);
        group.contexts().add(context);
        List<Share> shares =
                (List<Share>)
                        (List<?>)
                                options.communicator()
                                        .exchangeReferences(
                                                new Share(context, memory.address()),
                                                options.timeout());
        List<Long> addresses = new ArrayList<>();
        int ranksHere = 0;
        for (int peer = 0; peer < numRanks; peer++) {
            PeerAccess.enable(context, shares.get(peer).context());
            addresses.add(shares.get(peer).address());
            ranksHere += shares.get(peer).context().device().equals(context.device()) ? 1 : 0;
        }
        return new CudaHeaps(
                options.topology().rank(),
                options.numNvlBytes(),
                List.copyOf(addresses),
                ranksHere,
                group);
    }

    /** Every rank's heap as this GPU sees it. */
    List<Long> addresses() {
        return addresses;
    }

    long localAddress() {
        return addresses.get(rank);
    }

    long numBytes() {
        return numBytes;
    }

    /** Ranks that share this rank's GPU, itself included. */
    int ranksOnDevice() {
        return ranksOnDevice;
    }

    /**
     * Leaves the kernels to the last rank to close: unloading and freeing wait for the whole GPU,
     * also for peers that wait for this rank.
     */
    void closeWithGroup(CudaNormalKernels kernels) {
        group.kernels().add(kernels);
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            group.release();
        }
    }
}
