package io.deepep.cuda.ibgda;

import io.deepep.cuda.CudaContext;
import io.deepep.cuda.KernelParams;
import io.deepep.cuda.VirtualThreads;
import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.memory.MappedRegister;
import io.deepep.cuda.memory.PinnedSlots;
import io.deepep.cuda.memory.VirtualMemory;
import io.deepep.cuda.rdma.DoorbellRegister;
import io.deepep.cuda.rdma.QueuePair;
import io.deepep.error.NativeCallException;
import io.deepep.spi.Undo;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;

/**
 * The queue pairs of one rank for one kind of kernels, and the tables by which the policy {@code
 * Ibgda} finds them: {@code IbgdaQueues} of {@code deepep/ibgda_structs.cuh}.
 *
 * <p>Queue pairs are numbered: those to the first peer, then those to the next.
 */
final class IbgdaGroup implements AutoCloseable {
    private static final KernelStruct RANK = IbgdaStructs.QUEUES;
    private static final KernelStruct PEER = IbgdaStructs.PEER;
    private static final KernelStruct QUEUE = IbgdaStructs.QUEUE;
    private static final KernelStruct FAULT = IbgdaStructs.FAULT;

    /** As many blocks as one warp submits. */
    private static final int BATCH = 32;

    private final IbgdaOptions options;
    private final IbgdaOptions.Group group;
    private final IbgdaOptions.NetworkMemory memory;
    private final List<IbgdaNic> nics;
    private final Undo undo = new Undo();
    private final QueueSlab slab;
    private final VirtualMemory tables;
    private final PinnedSlots.Slot faults;
    private final PinnedSlots.Slot doorbellWords;
    private final List<DoorbellRegister> registers = new ArrayList<>();
    private final List<Long> doorbells = new ArrayList<>();
    private final List<QueuePair> pairs = new ArrayList<>();

    /** The places of the ranks that queue pairs lead to. */
    private final int[] placeOf;

    /**
     * False while queue pairs are reset: what the tables say was sent is not under way any more.
     */
    private boolean connected;

    IbgdaGroup(
            CudaContext context,
            IbgdaOptions options,
            IbgdaOptions.Group group,
            IbgdaOptions.NetworkMemory memory,
            List<IbgdaNic> nics) {
        this.options = options;
        this.group = group;
        this.memory = memory;
        this.nics = nics;
        int numQueues = group.numQueues();
        this.placeOf =
                IntStream.range(0, group.peers().size())
                        .filter(place -> group.peers().get(place) >= 0)
                        .flatMap(
                                place ->
                                        IntStream.generate(() -> place)
                                                .limit(group.queuesPerPeer()))
                        .toArray();
        try {
            tables =
                    undo.made(
                            VirtualMemory.allocate(
                                    context, tablesBytes(group), VirtualMemory.Export.NONE),
                            VirtualMemory::close);
            slab =
                    undo.made(
                            QueueSlab.open(
                                    context,
                                    numQueues,
                                    group.numBlocks(),
                                    options.queuesInGpuMemory(),
                                    nics.stream().map(IbgdaNic::device).toList()),
                            QueueSlab::close);
            faults = QueueSlab.takeOnHost(context, this, FAULT.numBytes() * numQueues);
            faults.memory().fill((byte) 0);
            doorbellWords = QueueSlab.takeOnHost(context, this, (long) Long.BYTES * numQueues);
            doorbellWords.memory().fill((byte) 0);
            for (int queue = 0; queue < numQueues; queue++) {
                DoorbellRegister register = DoorbellRegister.allocate(nic(queue).device());
                registers.add(undo.made(register, DoorbellRegister::close));
            }
            openDoorbells(context);
            for (int queue = 0; queue < numQueues; queue++) {
                QueuePair pair =
                        QueuePair.create(
                                slab.memory(nics.indexOf(nic(queue))),
                                slab.place(queue),
                                group.numBlocks(),
                                registers.get(queue),
                                nic(queue).port());
                pairs.add(undo.made(pair, QueuePair::close));
            }
        } catch (RuntimeException | Error e) {
            undo.close(e);
            throw e;
        }
    }

    /** Among the queue pairs to its peer; the same on both sides. */
    private int idxOf(int queue) {
        return queue % group.queuesPerPeer();
    }

    /** Queue pairs to a peer use the ports in turn, on both sides. */
    private IbgdaNic nic(int queue) {
        return nics.get(idxOf(queue) % nics.size());
    }

    /** For the GPU where the driver maps them; a thread rings the others. */
    private void openDoorbells(CudaContext context) {
        if (options.doorbells() != IbgdaOptions.Doorbells.THREAD) {
            try (Undo mapped = new Undo()) {
                List<MappedRegister> all = new ArrayList<>();
                for (DoorbellRegister register : registers) {
                    MappedRegister one =
                            MappedRegister.of(context, register.address(), register.numBytes());
                    all.add(mapped.made(one, MappedRegister::close));
                }
                all.forEach(one -> doorbells.add(one.deviceAddress()));
                all.forEach(one -> undo.made(one, MappedRegister::close));
                mapped.forget();
                return;
            } catch (NativeCallException notMapped) {
                if (options.doorbells() == IbgdaOptions.Doorbells.GPU) {
                    throw notMapped;
                }
                System.getLogger(IbgdaGroup.class.getName())
                        .log(
                                System.Logger.Level.DEBUG,
                                "a thread rings the doorbells: {0}",
                                notMapped.getMessage());
            }
        }
        for (int queue = 0; queue < registers.size(); queue++) {
            doorbells.add(doorbellWords.deviceAddress() + (long) Long.BYTES * queue);
        }
        undo.made(new DoorbellThread(doorbellWords.memory(), registers), DoorbellThread::close);
    }

    /** The numbers that cards know the queue pairs by, at their places in the table; else 0. */
    List<Integer> numbers() {
        Integer[] numbers = new Integer[group.peers().size() * group.queuesPerPeer()];
        Arrays.fill(numbers, 0);
        for (int queue = 0; queue < pairs.size(); queue++) {
            numbers[inTable(queue)] = pairs.get(queue).number();
        }
        return List.of(numbers);
    }

    /** What a rank has told of {@link #numbers} of this group, the one at {@code idx}. */
    int queuesPerPeer(CardAddress rank, int idx) {
        return rank.groups().get(idx).size() / group.peers().size();
    }

    private int inTable(int queue) {
        return placeOf[queue] * group.queuesPerPeer() + idxOf(queue);
    }

    /**
     * Connects all queue pairs, and writes the tables. One that cannot be connected has failed, and
     * the others work.
     *
     * @param addresses of all ranks
     * @param idx this group's place among those of a rank
     * @return why queue pairs are not connected
     */
    List<RuntimeException> connect(List<CardAddress> addresses, int idx) {
        List<RuntimeException> failures = new ArrayList<>();
        for (int queue = 0; queue < pairs.size(); queue++) {
            try {
                connect(queue, addresses.get(peerOf(queue)), idx);
            } catch (RuntimeException e) {
                failures.add(e);
                IbgdaFault.writeUnconnected(
                        faultMemory(queue), peerOf(queue), pairs.get(queue).number());
            }
        }
        try (Arena arena = Arena.ofConfined()) {
            KernelParams image = KernelParams.struct(arena, tablesBytes(group));
            write(image, addresses);
            tables.copyFrom(0, image.segment());
        }
        connected = true;
        return failures;
    }

    private void connect(int queue, CardAddress peer, int idx) {
        int there = group.ownPlace() * group.queuesPerPeer() + idxOf(queue);
        pairs.get(queue)
                .connect(
                        nic(queue).endpoint(),
                        port(peer, queue).endpoint(),
                        peer.groups().get(idx).get(there),
                        options.path());
    }

    private int peerOf(int queue) {
        return group.peers().get(placeOf[queue]);
    }

    private CardAddress.Port port(CardAddress peer, int queue) {
        return peer.ports().get(idxOf(queue) % peer.ports().size());
    }

    static long tablesBytes(IbgdaOptions.Group group) {
        int places = group.peers().size();
        return peerAt(places) + QUEUE.numBytes() * places * group.queuesPerPeer();
    }

    private static long peerAt(int place) {
        return RANK.numBytes() + PEER.numBytes() * place;
    }

    private long queueAt(int inTable) {
        return peerAt(group.peers().size()) + QUEUE.numBytes() * inTable;
    }

    private void write(KernelParams image, List<CardAddress> addresses) {
        new Params(RANK, image)
                .set("queues", table() + queueAt(0))
                .set("peers", table() + peerAt(0))
                .set("timeout_ns", options.timeout().toNanos())
                .setInt("queues_per_node", group.queuesPerPeer())
                .setInt("num_blocks", group.numBlocks())
                .setInt("batch", BATCH);
        for (int place = 0; place < group.peers().size(); place++) {
            int rank = group.peers().get(place);
            if (rank >= 0) {
                new Params(PEER, image, peerAt(place))
                        .set("base", addresses.get(rank).address() + group.base())
                        .setInt("rank", rank);
            }
        }
        for (int queue = 0; queue < pairs.size(); queue++) {
            QueuePair.Place place = slab.place(queue);
            new Params(QUEUE, image, queueAt(inTable(queue)))
                    .set("entries", slab.deviceAddress() + place.entries())
                    .set("record", slab.deviceAddress() + place.record())
                    .set("doorbell", doorbells.get(queue))
                    .set("completion", slab.deviceAddress() + place.completions())
                    .set("landing", memory.address() + memory.landings())
                    .set("fault", faults.deviceAddress() + FAULT.numBytes() * queue)
                    .setInt("number", pairs.get(queue).number())
                    .setInt("failed", IbgdaFault.read(faultMemory(queue)) == null ? 0 : 1)
                    .setInt("local_key", nic(queue).region().localKey())
                    .setInt("remote_key", port(addresses.get(peerOf(queue)), queue).remoteKey());
        }
    }

    /** Where kernels find the tables: {@code Network.queues}. */
    long table() {
        return tables.address();
    }

    /**
     * What has failed, by queue pair to some peers; those of which nothing is known are left out.
     */
    List<NativeCallException> failures(IntPredicate peers) {
        List<NativeCallException> failures = new ArrayList<>();
        for (int queue = 0; queue < pairs.size(); queue++) {
            IbgdaFault fault = peers.test(peerOf(queue)) ? fault(queue) : null;
            if (fault != null) {
                failures.add(fault.toException(nic(queue).port().name()));
            }
        }
        return failures;
    }

    private IbgdaFault fault(int queue) {
        IbgdaFault seen = IbgdaFault.read(faultMemory(queue));
        if (seen != null) {
            return seen;
        }
        try (Arena arena = Arena.ofConfined()) {
            return IbgdaFault.ofCompletion(
                    peerOf(queue), pairs.get(queue).number(), slab.completion(queue, arena));
        }
    }

    private MemorySegment faultMemory(int queue) {
        return faults.memory().asSlice(FAULT.numBytes() * queue, FAULT.numBytes());
    }

    /**
     * Waits until what kernels have sent has arrived, once no kernel sends any more. What a queue
     * pair that has failed has not sent, is lost, and so is all if the queue pairs are reset.
     *
     * @return whether all of it has arrived
     */
    boolean quiet(long deadlineNanos) {
        if (!connected) {
            return false;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment image = arena.allocate(tablesBytes(group), Long.BYTES);
            tables.copyTo(0, image);
            boolean all = true;
            for (int queue = 0; queue < pairs.size(); queue++) {
                long ready =
                        image.get(
                                ValueLayout.JAVA_LONG,
                                queueAt(inTable(queue)) + QUEUE.offset("ready"));
                boolean unconnected = ready == 0 && IbgdaFault.read(faultMemory(queue)) != null;
                all &= !unconnected && (ready == 0 || await(queue, ready, deadlineNanos));
            }
            return all;
        }
    }

    private boolean await(int queue, long ready, long deadlineNanos) {
        for (long looks = 0; ; looks++) {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment completion = slab.completion(queue, arena);
                if (fault(queue) != null) {
                    return false;
                }
                if (Completion.end(completion) == (ready & Completion.INDEX_MASK)) {
                    return true;
                }
            }
            if (System.nanoTime() - deadlineNanos > 0) {
                return false;
            }
            VirtualThreads.pause(looks);
        }
    }

    /** All queue pairs as they were before {@link #connect}: what was sent is forgotten. */
    void reset() {
        connected = false;
        pairs.forEach(QueuePair::reset);
        slab.clear();
        faults.memory().fill((byte) 0);
        doorbellWords.memory().fill((byte) 0);
    }

    @Override
    public void close() {
        undo.close();
    }
}
