package io.deepep.cuda.ibgda;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.InProcessGroup;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.cuda.kernel.NetworkStructs;
import io.deepep.cuda.memory.PinnedMemory;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Ranks as threads that a card in software joins, each with queue pairs to all others.
 *
 * <pre>
 *   network memory of a rank: [NETWORK_BYTES] what peers write | [NETWORK_BYTES] outbox | landing
 * </pre>
 */
final class CardRanks implements AutoCloseable {
    static final long NETWORK_BYTES = 1 << 16;

    private final CudaContext context = CudaContext.shared(CudaDevice.of(0));
    private final InProcessGroup group;
    private final List<PinnedMemory> memories = new ArrayList<>();
    private final Ibgda[] opened;

    /** Opens all ranks. */
    CardRanks(int numRanks, int queuesPerPeer, IbgdaOptions options) {
        group = InProcessGroup.of(numRanks);
        opened = new Ibgda[numRanks];
        for (int rank = 0; rank < numRanks; rank++) {
            memories.add(
                    PinnedMemory.allocate(
                            context, 2 * NETWORK_BYTES + IbgdaOptions.NetworkMemory.LANDING_BYTES));
        }
        try {
            onEach(rank -> opened[rank] = open(rank, queuesPerPeer, options));
        } catch (RuntimeException e) {
            close();
            throw e;
        }
    }

    private Ibgda open(int rank, int queuesPerPeer, IbgdaOptions options) {
        List<Integer> peers =
                IntStream.range(0, opened.length)
                        .map(peer -> peer == rank ? -1 : peer)
                        .boxed()
                        .toList();
        return Ibgda.open(
                group.communicator(rank),
                context,
                options,
                new IbgdaOptions.NetworkMemory(
                        memories.get(rank).deviceAddress(),
                        memories.get(rank).segment().byteSize(),
                        2 * NETWORK_BYTES),
                List.of(
                        new IbgdaOptions.Group(
                                peers, rank, 0, queuesPerPeer, IbgdaOptions.Group.MIN_BLOCKS)));
    }

    /** What a rank does. */
    interface Task {
        void run(int rank);
    }

    /** All ranks at once. */
    void onEach(Task task) {
        try {
            group.run(communicator -> task.run(communicator.rank()));
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    int numRanks() {
        return opened.length;
    }

    Ibgda ibgda(int rank) {
        return opened[rank];
    }

    /** Network memory of a rank, outbox and all. */
    MemorySegment memory(int rank) {
        return memories.get(rank).segment();
    }

    /** Writes the {@code Network} of a rank into a launch's parameters. */
    void fillNetwork(MemorySegment params, long at, int rank) {
        KernelStruct struct = NetworkStructs.NETWORK;
        params.set(JAVA_LONG, at + struct.offset("base"), memories.get(rank).deviceAddress());
        params.set(JAVA_LONG, at + struct.offset("outbox"), NETWORK_BYTES);
        params.set(JAVA_LONG, at + struct.offset("queues"), opened[rank].table(0));
        params.set(JAVA_INT, at + struct.offset("node"), rank);
        params.set(JAVA_INT, at + struct.offset("num_nodes"), opened.length);
    }

    @Override
    public void close() {
        Arrays.stream(opened).filter(ibgda -> ibgda != null).forEach(Ibgda::close);
        memories.forEach(PinnedMemory::close);
        group.close();
    }
}
