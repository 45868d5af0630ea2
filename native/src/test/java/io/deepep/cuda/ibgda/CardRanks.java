package io.deepep.cuda.ibgda;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.InProcessGroup;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaDriver;
import io.deepep.cuda.CudaFunction;
import io.deepep.cuda.CudaModule;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.LaunchConfig;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.kernel.NetworkStructs;
import io.deepep.cuda.memory.PinnedMemory;
import io.deepep.cuda.rdma.Endpoint;
import io.deepep.cuda.rdma.Gid;
import io.deepep.error.NativeCallException;
import io.deepep.spi.Meeting;
import io.deepep.testkit.conformance.RequiredBackends;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.URL;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.function.IntFunction;
import java.util.function.IntUnaryOperator;
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

    /** One cell a node. */
    static final long SLOTS_STRIDE = 16_384;

    static final long FLAGS = 3 * SLOTS_STRIDE;
    static final long SMALL_STRIDE = 256;
    static final long SLOT_BYTES = 1024;
    static final int BLOCKS = 4;

    private static final long ACKS = FLAGS + 1024;
    private static final int WARP = 32;

    private final CudaContext context = CudaContext.shared(CudaDevice.of(0));
    private final InProcessGroup group;
    private final List<PinnedMemory> memories = new ArrayList<>();
    private final Ibgda[] opened;

    /** Opens all ranks. */
    CardRanks(int numRanks, int queuesPerPeer, IbgdaOptions options) {
        this(numRanks, _ -> queuesPerPeer, _ -> options);
    }

    /** The same where ranks differ. */
    CardRanks(int numRanks, IntUnaryOperator queuesPerPeer, IntFunction<IbgdaOptions> options) {
        group = InProcessGroup.of(numRanks);
        opened = new Ibgda[numRanks];
        for (int rank = 0; rank < numRanks; rank++) {
            memories.add(
                    PinnedMemory.allocate(
                            context, 2 * NETWORK_BYTES + IbgdaOptions.NetworkMemory.LANDING_BYTES));
        }
        try {
            onEach(
                    rank ->
                            opened[rank] =
                                    open(
                                            rank,
                                            rank,
                                            queuesPerPeer.applyAsInt(rank),
                                            options.apply(rank)));
        } catch (RuntimeException e) {
            close();
            throw e;
        }
    }

    /** Kernels that reach their peers through cards; skips the test where there are none. */
    static CudaModule requireChecks() {
        URL binary = CardRanks.class.getResource("nic_checks.fatbin");
        String missing = binary == null ? "nic_checks.fatbin is missing: built without nvcc" : null;
        RequiredBackends.assumeCuda(
                CudaDriver.unavailabilityReason().or(() -> Optional.ofNullable(missing)));
        CudaContext context = CudaContext.shared(CudaDevice.of(0));
        CudaModule module = CudaModule.loadResource(context, "nic_checks.fatbin", binary);
        NicCheckStructs.HEADER.requireSame(module);
        return module;
    }

    private Ibgda open(int rank, int ownPlace, int queuesPerPeer, IbgdaOptions options) {
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
                                peers, ownPlace, 0, queuesPerPeer, IbgdaOptions.Group.MIN_BLOCKS)));
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

    /** What a rank's queue pairs have reported, to whomever they lead. */
    Optional<NativeCallException> failure(int rank) {
        return opened[rank].failure(_ -> true);
    }

    /**
     * A rank's part in replacing one that is closed.
     *
     * @param place of the new one in the tables of the others, as it believes
     */
    void replace(int rank, int dead, int place, IbgdaOptions options) {
        if (rank == dead) {
            opened[rank] = open(rank, place, 1, options);
        } else {
            opened[rank].admit(group.communicator(rank));
        }
    }

    /** The same where the new rank says that it is on RoCE: nobody can connect to it. */
    void replaceByStranger(int rank, int dead) {
        if (rank != dead) {
            opened[rank].admit(group.communicator(rank));
            return;
        }
        Endpoint roce = new Endpoint(true, 0, 5, new Gid(0, 0, 1), true);
        List<Integer> numbers = Collections.nCopies(opened.length, 1);
        CardAddress address =
                new CardAddress(0, List.of(new CardAddress.Port(roce, 0)), List.of(numbers));
        Meeting meeting =
                new Meeting(group.communicator(rank), Duration.ofSeconds(20), "no network", "");
        meeting.together(address::encode);
        meeting.step(() -> {});
    }

    /** A rank's part in mending what has failed. */
    void mend(int rank) {
        opened[rank].mend(group.communicator(rank));
    }

    /** Network memory of a rank, outbox and all. */
    MemorySegment memory(int rank) {
        return memories.get(rank).segment();
    }

    /** Writes the {@code Network} of a rank into a launch's parameters. */
    void fillNetwork(Params params, int rank) {
        params.inner("net", NetworkStructs.NETWORK)
                .set("base", memories.get(rank).deviceAddress())
                .set("outbox", NETWORK_BYTES)
                .set("queues", opened[rank].table(0))
                .setInt("node", rank)
                .setInt("num_nodes", opened.length);
    }

    /** Cells, one a node, in a launch's parameters. */
    static void cells(Params params, String field, long offset, long stride) {
        params.inner(field, NetworkStructs.CELLS).set("offset", offset).set("stride", stride);
    }

    /**
     * Each of the {@link #BLOCKS} of a rank sends as many slots to every other rank, and checks
     * what it gets.
     *
     * @return how often that was not as it should be, or did not come in time
     */
    long exchange(CudaModule module, int numRounds, Duration patience) {
        CudaFunction kernel = module.function("deepep_nic_exchange");
        try (Arena arena = Arena.ofConfined();
                PinnedMemory errors = PinnedMemory.allocate(context, Long.BYTES)) {
            LaunchConfig launch = new LaunchConfig(arena, BLOCKS, WARP);
            List<CudaStream> streams = new ArrayList<>();
            for (int rank = 0; rank < opened.length; rank++) {
                streams.add(CudaStream.create(context));
            }
            for (int rank = 0; rank < opened.length; rank++) {
                Params params = NicCheckStructs.EXCHANGE.allocate(arena);
                fillNetwork(params, rank);
                cells(params, "slots", 0, SLOTS_STRIDE);
                cells(params, "flags", FLAGS, SMALL_STRIDE);
                cells(params, "acks", ACKS, SMALL_STRIDE);
                params.set("errors", errors.deviceAddress())
                        .set("timeout_ns", patience.toNanos())
                        .set("slot_bytes", SLOT_BYTES)
                        .set("num_slots", 3)
                        .setInt("num_rounds", numRounds);
                kernel.launch(launch, params.memory(), streams.get(rank));
            }
            streams.forEach(CudaStream::synchronize);
            streams.forEach(CudaStream::close);
            return errors.segment().get(JAVA_LONG, 0);
        }
    }

    @Override
    public void close() {
        Arrays.stream(opened).filter(ibgda -> ibgda != null).forEach(Ibgda::close);
        memories.forEach(PinnedMemory::close);
        group.close();
    }
}
