package io.deepep.buffer.memory;

import io.deepep.BufferOptions;
import io.deepep.Network;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.NetworkLibrary;
import io.deepep.cuda.ibgda.Ibgda;
import io.deepep.cuda.memory.RdmaHeaps;
import io.deepep.cuda.nvshmem.NvshmemWorld;
import io.deepep.cuda.nvshmem.PeMap;
import io.deepep.spi.HeapRanks;
import io.deepep.spi.Layout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * The RDMA buffer of a rank on a GPU, zeroed: memory that all ranks access directly, a piece of
 * NVSHMEM's symmetric heap, or memory that network cards access.
 *
 * @param rank the rank that the buffer belongs to
 * @param heaps the addresses of all ranks' buffers, as this rank reaches them
 * @param outbox bytes from the start of the buffer to the outbox behind it, from which a network
 *     sends
 * @param queues the queues of network cards that kernels drive; null if there are none
 * @param mapped the buffers that are accessed directly: of all ranks or, if kernels drive network
 *     cards, of the node; empty over NVSHMEM
 * @param release frees this rank's buffer, without waiting for other ranks
 */
public record RdmaBuffer(
        int rank,
        RdmaHeaps heaps,
        long outbox,
        Queues queues,
        Optional<CudaHeaps> mapped,
        Runnable release)
        implements AutoCloseable {
    /**
     * What NVSHMEM may take to start on a busy machine, however short the buffer's time-out: a
     * process in which it has been given up once cannot start it again.
     */
    private static final Duration LEAST_START = Duration.ofSeconds(20);

    /**
     * The queues of a network card that kernels drive.
     *
     * @param lowLatency device address of the queues of low-latency mode; 0 if it is not used
     * @param ibgda the queues of all modes
     */
    public record Queues(long lowLatency, Ibgda ibgda) {}

    /** Allocates {@code options.numRdmaBytes()} and shares it with the peers. Collective. */
    public static RdmaBuffer open(
            BufferOptions options,
            BufferSizes sizes,
            CudaContext context,
            CudaStream stream,
            GpuSharing sharing,
            HeapRanks ranks) {
        boolean crosses = options.topology().isInternode();
        if (crosses && options.network() instanceof Network.Ibgda network) {
            return new IbgdaBuffer(options, network).open(sizes, context, ranks);
        }
        if (crosses && options.network() instanceof Network.Nvshmem network) {
            sharing.requireRegular();
            PeMap peMap = NvshmemSettings.peMap(options, sharing);
            NvshmemWorld world =
                    NvshmemWorld.join(
                            NvshmemHeap.installation(),
                            NvshmemSettings.of(options, network),
                            peMap,
                            context,
                            options.communicator(),
                            Collections.max(List.of(options.meetingTimeout(), LEAST_START)));
            return in(world, peMap, options, sizes.outboxBytes(), context, stream);
        }
        CudaHeaps peers =
                CudaHeaps.open(ranks, context, options.numRdmaBytes(), CudaHeaps.Reach.GROUP);
        return new RdmaBuffer(
                options.topology().rank(),
                RdmaHeaps.ofPeers(peers.addresses()),
                0,
                null,
                Optional.of(peers),
                peers::close);
    }

    /** A piece of the world's symmetric heap, and the outbox behind it. */
    private static RdmaBuffer in(
            NvshmemWorld world,
            PeMap peMap,
            BufferOptions options,
            long outboxBytes,
            CudaContext context,
            CudaStream stream) {
        int rank = options.topology().rank();
        long outbox = Layout.alignToLine(options.numRdmaBytes());
        long numBytes = outbox + outboxBytes;
        int allocation =
                world.allocate(
                        numBytes,
                        Layout.LINE_BYTES,
                        options.communicator(),
                        options.meetingTimeout());
        try {
            // The outbox too: what counts the rows of a batch there must be of no earlier buffer.
            stream.fillBytes(world.address(allocation), (byte) 0, numBytes);
            stream.synchronize();
            List<Long> addresses = new ArrayList<>();
            for (int peer = 0; peer < options.topology().numRanks(); peer++) {
                addresses.add(
                        peer == rank
                                ? world.address(allocation)
                                : world.peerAddress(allocation, peer).orElse(0));
            }
            // Where NVLink reaches all peers, kernels store into their memory and call nobody.
            boolean direct =
                    IntStream.range(0, addresses.size())
                            .filter(peMap::includes)
                            .allMatch(peer -> addresses.get(peer) != 0);
            NetworkLibrary library =
                    new NvshmemNetwork(world, peMap, context, NvshmemSettings.masks(options));
            return new RdmaBuffer(
                    rank,
                    RdmaHeaps.over(direct ? Optional.empty() : Optional.of(library), addresses),
                    outbox,
                    null,
                    Optional.empty(),
                    () -> world.release(allocation));
        } catch (RuntimeException | Error failure) {
            world.release(allocation);
            throw failure;
        }
    }

    /** Opens the memory of new ranks. Collective with their {@link #open}. */
    public void admit(HeapRanks ranks) {
        mapped.orElseThrow().admit(ranks);
        if (queues != null) {
            queues.ibgda().admit(ranks.communicator());
        }
    }

    public long localAddress() {
        return heaps.addresses().get(rank);
    }

    @Override
    public void close() {
        release.run();
    }
}
