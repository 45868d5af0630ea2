package io.deepep.buffer;

import io.deepep.BufferOptions;
import io.deepep.Device;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.PeerAccess;
import io.deepep.cuda.VirtualMemory;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * One symmetric heap of ranks that are threads of one process: device memory whose addresses peers
 * use directly, the NVL buffer or, for virtual nodes, the RDMA buffer. Unmapped when the last rank
 * has closed, because a peer's kernel may still read it.
 *
 * <p>Virtual memory, because freeing plain device memory waits for every kernel of the GPU, also
 * for one of another buffer that waits for a rank which is just freeing.
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
     * Allocates {@code numBytes}, zeroes them, and meets the peers: collective. Peers can reach the
     * memory once all ranks have returned.
     */
    @SuppressWarnings("unchecked")
    static CudaHeaps open(BufferOptions options, CudaContext context, long numBytes) {
        int numRanks = options.topology().numRanks();
        List<Object> groups =
                options.communicator().exchangeReferences(new Group(numRanks), options.timeout());
        Group group = (Group) groups.getFirst();
        VirtualMemory memory = VirtualMemory.allocate(context, numBytes, VirtualMemory.Export.NONE);
        memory.clear();
        group.memories().add(memory);
        List<Share> shares =
                (List<Share>)
                        (List<?>)
                                options.communicator()
                                        .exchangeReferences(
                                                new Share(context, memory.address()),
                                                options.timeout());
        List<Long> addresses = new ArrayList<>();
        Map<Device, Integer> ranksByDevice = new HashMap<>();
        for (int peer = 0; peer < numRanks; peer++) {
            CudaContext other = shares.get(peer).context();
            if (!other.device().equals(context.device())) {
                PeerAccess.enable(context, other);
                memory.allowAccess(other);
            }
            ranksByDevice.merge(other.device(), 1, Integer::sum);
            addresses.add(shares.get(peer).address());
        }
        return new CudaHeaps(
                options.topology().rank(),
                numBytes,
                List.copyOf(addresses),
                Collections.max(ranksByDevice.values()),
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

    /**
     * The most ranks that share a GPU, the same on all ranks: they take as many multiprocessors.
     */
    int ranksOnDevice() {
        return ranksOnDevice;
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            group.release();
        }
    }
}
