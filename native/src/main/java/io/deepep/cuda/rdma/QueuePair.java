package io.deepep.cuda.rdma;

import io.deepep.Network;
import io.deepep.cuda.rdma.Command.Completions;
import io.deepep.cuda.rdma.Command.Pair;
import io.deepep.error.DeepEpUnavailableException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.math.BigInteger;

/**
 * A reliable connection that others than this process drive: its send queue and its collapsed
 * completion queue lie in memory of the user, and it receives nothing but writes and atomics.
 *
 * <p>States follow each other: reset, initialised, ready to receive, ready to send. An error leaves
 * it in an error state until {@link #reset}.
 */
public final class QueuePair implements AutoCloseable {
    /** Bytes of an entry and of a completion. */
    public static final int ENTRY_BYTES = 64;

    private static final int LOG_MAX_MESSAGE = 30;

    /** What an entry may move. Kernels do not look: their rows, rings and records are shorter. */
    public static final long MAX_MESSAGE_BYTES = 1L << LOG_MAX_MESSAGE;

    private static final int LONGEST_NOT_READY_TIMER = 12;
    private static final int MAX_RETRIES_NOT_READY = 7;
    private static final int MAX_HOPS = 255;
    private static final int UDP_PORTS_OF_ROCE = 0xc000;
    private static final long ADDRESS_VECTOR_OBJECT = 1 << 5;
    private static final int MAC_BYTES = 6;

    private final RdmaDevice device;
    private final RdmaPort port;
    private final MemorySegment completions;
    private final MemorySegment pair;
    private final int number;

    /**
     * Where the parts are, in bytes from the beginning of the queues' memory.
     *
     * @param entries the send queue, at a multiple of 4096
     * @param completions as many completions as entries, at a multiple of 4096, all bytes 255
     * @param record doorbell record of the send queue, 8 bytes
     * @param completionRecord that of the completion queue, 8 bytes
     */
    public record Place(long entries, long completions, long record, long completionRecord) {}

    private QueuePair(
            RdmaDevice device,
            RdmaPort port,
            MemorySegment completions,
            MemorySegment pair,
            int number) {
        this.device = device;
        this.port = port;
        this.completions = completions;
        this.pair = pair;
        this.number = number;
    }

    /**
     * Makes a queue pair, in the state reset.
     *
     * @param memory that holds its queues; its device is the queue pair's
     * @param numEntries of the send queue, a power of two
     */
    public static QueuePair create(
            QueueMemory memory,
            Place place,
            int numEntries,
            DoorbellRegister doorbell,
            RdmaPort port) {
        RdmaDevice device = memory.device();
        try (Arena arena = Arena.ofConfined()) {
            Command ofCompletions =
                    completionQueue(arena, device, memory, place, numEntries, doorbell);
            MemorySegment completions = device.create("completion queue", ofCompletions);
            try {
                Command command =
                        Command.ofQueue(arena, Command.CREATE_QUEUE_PAIR)
                                .set(Pair.MEMORY, memory.number())
                                .set(Pair.MEMORY_OFFSET, place.entries())
                                .set(Pair.MEMORY_VALID, 1)
                                .set(Pair.PATH_STATE, Pair.MIGRATED)
                                .set(Pair.DOMAIN, device.domainNumber())
                                .set(Pair.DOORBELL_PAGE, doorbell.page())
                                .set(Pair.RECEIVE_TYPE, Pair.NO_RECEIVES)
                                .set(Pair.LOG_ENTRIES, log(numEntries))
                                .set(Pair.TIME_STAMPS, Pair.DEFAULT_TIME_STAMPS)
                                .set(Pair.RECORD_VALID, 1)
                                .set(Pair.RECORD_MEMORY, memory.number())
                                .set(Pair.RECORD_OFFSET, place.record());
                long queue = ofCompletions.get(Command.NUMBER);
                command.set(Pair.SEND_COMPLETIONS, queue).set(Pair.RECEIVE_COMPLETIONS, queue);
                MemorySegment pair = device.create("queue pair", command);
                return new QueuePair(
                        device, port, completions, pair, (int) command.get(Command.NUMBER));
            } catch (RuntimeException | Error e) {
                device.destroy(completions);
                throw e;
            }
        }
    }

    private static Command completionQueue(
            Arena arena,
            RdmaDevice device,
            QueueMemory memory,
            Place place,
            int numEntries,
            DoorbellRegister doorbell) {
        return Command.ofQueue(arena, Command.CREATE_COMPLETION_QUEUE)
                .set(Completions.MEMORY, memory.number())
                .set(Completions.MEMORY_OFFSET, place.completions())
                .set(Completions.MEMORY_VALID, 1)
                .set(Completions.COLLAPSED, 1)
                .set(Completions.IGNORE_OVERRUN, 1)
                .set(Completions.LOG_ENTRIES, log(numEntries))
                .set(Completions.DOORBELL_PAGE, doorbell.page())
                .set(Completions.EVENT_QUEUE, device.eventQueue())
                .set(Completions.RECORD_VALID, 1)
                .set(Completions.RECORD_MEMORY, memory.number())
                .set(Completions.RECORD_OFFSET, place.completionRecord());
    }

    private static int log(long powerOfTwo) {
        return Long.numberOfTrailingZeros(Long.highestOneBit(powerOfTwo));
    }

    /** 24 bits, by which entries, doorbells and peers name it. */
    public int number() {
        return number;
    }

    /**
     * Connects it: from reset to ready to send.
     *
     * @param own this side's port
     * @param peer that of the other side
     * @param peerNumber of the queue pair there, which connects to this one
     */
    public void connect(Endpoint own, Endpoint peer, int peerNumber, Network.Path path) {
        if (own.ethernet() != peer.ethernet()) {
            throw new DeepEpUnavailableException(
                    "one rank's NIC is RoCE, another's InfiniBand; they cannot reach each other",
                    "choose NICs of one kind for all ranks");
        }
        try (Arena arena = Arena.ofConfined()) {
            change(
                    change(arena, Command.RESET_TO_INIT)
                            .set(Pair.WRITE_ACCESS, 1)
                            .set(Pair.ATOMIC_ACCESS, 1)
                            .set(Pair.ATOMIC_MODE, Pair.ATOMICS_UP_TO_8_BYTES)
                            .set(Pair.PORT, port.number())
                            .set(Pair.PATH_STATE, Pair.MIGRATED));
            Command toReceive =
                    change(arena, Command.INIT_TO_RECEIVE)
                            .set(Pair.MTU, Paths.mtu(path, own.mtu(), peer.mtu()))
                            .set(Pair.LOG_MAX_MESSAGE, LOG_MAX_MESSAGE)
                            .set(Pair.PEER, peerNumber)
                            .set(Pair.MIN_NOT_READY_TIMER, LONGEST_NOT_READY_TIMER)
                            .set(Pair.LOG_ATOMICS_TAKEN, log(device.facts().maxAtomicsTaken()))
                            .set(Pair.ADAPTIVE_ROUTING, path.adaptiveRouting() ? 1 : 0);
            address(toReceive, own, peer, path);
            change(toReceive);
            change(
                    change(arena, Command.RECEIVE_TO_SEND)
                            .set(Pair.LOG_ATOMICS_SENT, log(device.facts().maxAtomicsSent()))
                            .set(Pair.RETRIES, path.retries())
                            .set(Pair.RETRIES_NOT_READY, MAX_RETRIES_NOT_READY)
                            .set(Pair.ACK_TIMEOUT, path.ackTimeout()));
        }
    }

    private Command change(Arena arena, int opcode) {
        return Command.ofQueue(arena, opcode).set(Command.NUMBER, number);
    }

    private void change(Command command) {
        device.modify("queue pair 0x" + Integer.toHexString(number), pair, command);
    }

    private void address(Command command, Endpoint own, Endpoint peer, Network.Path path) {
        if (!own.ethernet()) {
            command.set(Pair.LID, peer.lid())
                    .set(Pair.TRAFFIC_CLASS, path.quality().trafficClass())
                    .set(Pair.SERVICE_LEVEL, path.quality().serviceLevel());
            if (port.needsGlobalHeader()) {
                command.set(Pair.GLOBAL_HEADER, 1);
                addressGlobally(command, own, peer);
            }
            return;
        }
        addressGlobally(command, own, peer);
        command.set(Pair.ETHERNET_PRIORITY, path.quality().serviceLevel() & 7)
                .set(Pair.MAC, mac(own, peer, path));
        if (own.isVersion2()) {
            // Switches spread connections over links by this port.
            command.set(Pair.UDP_PORT, UDP_PORTS_OF_ROCE | (number & 0x3fff))
                    .set(Pair.DSCP, path.quality().trafficClass() >>> 2);
        } else {
            command.set(Pair.TRAFFIC_CLASS, path.quality().trafficClass());
        }
    }

    private static void addressGlobally(Command command, Endpoint own, Endpoint peer) {
        command.set(Pair.GID_INDEX, own.gid().idx())
                .set(Pair.GID_HIGH, peer.gid().high())
                .set(Pair.GID_LOW, peer.gid().low())
                .set(Pair.HOP_LIMIT, MAX_HOPS);
    }

    /** The Ethernet address behind the peer's, as the kernel resolves it. */
    private long mac(Endpoint own, Endpoint peer, Network.Path path) {
        RdmaLibraries libraries = device.libraries();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment attributes = arena.allocate(RdmaStructs.AH_ATTR_BYTES, Long.BYTES);
            attributes.set(ValueLayout.JAVA_LONG, 0, Long.reverseBytes(peer.gid().high()));
            attributes.set(ValueLayout.JAVA_LONG, Long.BYTES, Long.reverseBytes(peer.gid().low()));
            RdmaStructs.AH_GID_INDEX.set(attributes, own.gid().idx());
            RdmaStructs.AH_HOP_LIMIT.set(attributes, MAX_HOPS);
            RdmaStructs.AH_TRAFFIC_CLASS.set(attributes, path.quality().trafficClass());
            RdmaStructs.AH_SERVICE_LEVEL.set(attributes, path.quality().serviceLevel());
            RdmaStructs.AH_IS_GLOBAL.set(attributes, 1);
            RdmaStructs.AH_PORT.set(attributes, port.number());
            MemorySegment handle =
                    libraries.createAh.make(
                            device.name() + " to " + peer.gid(), device.domain(), attributes);
            try {
                MemorySegment described =
                        device.describe(
                                arena, RdmaStructs.OBJECT_AH, handle, ADDRESS_VECTOR_OBJECT);
                MemorySegment mac =
                        MemorySegment.ofAddress(RdmaStructs.ADDRESS_VECTOR.get(described))
                                .reinterpret(Long.MAX_VALUE)
                                .asSlice(RdmaStructs.VECTOR_MAC.at(), MAC_BYTES);
                return new BigInteger(1, mac.toArray(ValueLayout.JAVA_BYTE)).longValue();
            } finally {
                libraries.destroyAh.call(handle);
            }
        }
    }

    /**
     * Back to the beginning, whatever has happened: entries that are not executed are forgotten.
     * The memory of the queues is for the caller to clear.
     */
    public void reset() {
        try (Arena arena = Arena.ofConfined()) {
            change(Command.plain(arena, Command.TO_RESET).set(Command.NUMBER, number));
        }
    }

    /** Ends it: entries that are not executed are lost. */
    @Override
    public void close() {
        device.destroy(pair);
        device.destroy(completions);
    }
}
