package io.deepep.cuda.ibgda;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.ibgda.IbgdaQueues.Peer;
import io.deepep.cuda.ibgda.IbgdaQueues.QueuePair;
import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.cuda.kernel.NetworkStructs;
import io.deepep.testkit.nic.QueueMemory;
import io.deepep.testkit.nic.RegisteredMemory;
import io.deepep.testkit.nic.SoftwareNic;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongFunction;

/**
 * Ranks that a software network card joins: their network memory, a number of queue pairs from each
 * to each, and what the policy {@code Ibgda} needs to know of them.
 *
 * <pre>
 *   network memory of a rank: [numBytes] what peers write | [outboxBytes] outbox | u64 for each queue pair: landing
 * </pre>
 */
public final class NicGroup {
    private final Shape shape;
    private final long numBytes;
    private final long outboxBytes;
    private final List<RegisteredMemory> memories = new ArrayList<>();
    private final List<IbgdaQueues> queues = new ArrayList<>();
    private final List<Long> tables = new ArrayList<>();
    private final List<List<List<QueueMemory>>> queueMemories = new ArrayList<>();

    /**
     * How large it is.
     *
     * @param queuesPerNode queue pairs from each rank to each other
     * @param numEntries of each
     * @param timeout of the device for the card
     */
    public record Shape(int numNodes, int queuesPerNode, int numEntries, Duration timeout) {}

    /** Where the device finds a table that {@code write} fills, given its address. */
    public interface Tables {
        long place(long numBytes, TableWriter writer);
    }

    /** Fills zeroed memory for a table that the device will find at {@code address}. */
    public interface TableWriter {
        void write(MemorySegment image, long address);
    }

    /**
     * Connects all ranks.
     *
     * @param numBytes of network memory
     * @param outboxBytes where what goes to the peers is composed
     * @param allocate zeroed memory that device, card and Java see at one address
     * @param place device memory for tables
     */
    public NicGroup(
            SoftwareNic nic,
            Shape shape,
            long numBytes,
            long outboxBytes,
            LongFunction<MemorySegment> allocate,
            Tables place) {
        this.shape = shape;
        this.numBytes = numBytes;
        this.outboxBytes = outboxBytes;
        long landings = (long) Long.BYTES * shape.numNodes() * shape.queuesPerNode();
        for (int node = 0; node < shape.numNodes(); node++) {
            MemorySegment memory = allocate.apply(numBytes + outboxBytes + landings);
            memories.add(new RegisteredMemory(0x1100 + node, memory.address(), memory));
        }
        for (int node = 0; node < shape.numNodes(); node++) {
            IbgdaQueues table = connect(nic, node, allocate);
            queues.add(table);
            tables.add(place.place(table.numBytes(), table::write));
        }
    }

    private IbgdaQueues connect(SoftwareNic nic, int node, LongFunction<MemorySegment> allocate) {
        List<Peer> peers = new ArrayList<>();
        List<List<QueueMemory>> byPeer = new ArrayList<>();
        RegisteredMemory own = memories.get(node);
        for (int to = 0; to < shape.numNodes(); to++) {
            List<QueuePair> pairs = new ArrayList<>();
            List<QueueMemory> queueMemory = new ArrayList<>();
            RegisteredMemory other = memories.get(to);
            for (int idx = 0; to != node && idx < shape.queuesPerNode(); idx++) {
                long bytes = QueueMemory.numBytes(shape.numEntries());
                QueueMemory memory = QueueMemory.in(allocate.apply(bytes), shape.numEntries());
                nic.connect(number(node, to, idx), memory, own, other);
                queueMemory.add(memory);
                pairs.add(
                        new QueuePair(
                                number(node, to, idx),
                                memory.entries().address(),
                                memory.record().address(),
                                memory.doorbell().address(),
                                memory.completion(),
                                landing(node, to, idx)));
            }
            byPeer.add(queueMemory);
            peers.add(new Peer(to, other.base(), other.key(), pairs));
        }
        queueMemories.add(byPeer);
        MemorySegment faults =
                allocate.apply(IbgdaQueues.faultsBytes(shape.numNodes(), shape.queuesPerNode()));
        return new IbgdaQueues(
                peers, shape.numEntries(), own.key(), shape.timeout(), faults, faults.address());
    }

    /** Of a queue pair. */
    public static int number(int node, int to, int idx) {
        return (node + 1) << 16 | (to + 1) << 8 | idx;
    }

    long landing(int node, int to, int idx) {
        long queue = (long) to * shape.queuesPerNode() + idx;
        return memories.get(node).base() + numBytes + outboxBytes + Long.BYTES * queue;
    }

    /** Network memory of a rank, outbox and all. */
    public MemorySegment memory(int node) {
        return memories.get(node).memory();
    }

    int key(int node) {
        return memories.get(node).key();
    }

    /** From a cell to where it is composed. */
    long outbox() {
        return numBytes;
    }

    /** Where the device finds its queues: {@code Network.queues}. */
    public long table(int node) {
        return tables.get(node);
    }

    QueueMemory queueMemory(int node, int to, int idx) {
        return queueMemories.get(node).get(to).get(idx);
    }

    /** What the device has been told. */
    public IbgdaQueues queues(int node) {
        return queues.get(node);
    }

    /** Writes the {@code Network} of a rank into a launch's parameters. */
    void fillNetwork(MemorySegment params, long at, int node) {
        KernelStruct struct = NetworkStructs.NETWORK;
        params.set(JAVA_LONG, at + struct.offset("base"), memories.get(node).base());
        params.set(JAVA_LONG, at + struct.offset("outbox"), numBytes);
        params.set(JAVA_LONG, at + struct.offset("queues"), tables.get(node));
        params.set(JAVA_INT, at + struct.offset("node"), node);
        params.set(JAVA_INT, at + struct.offset("num_nodes"), shape.numNodes());
    }
}
