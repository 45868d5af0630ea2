package io.deepep.cuda.rdma;

import io.deepep.Network;
import io.deepep.error.DeepEpUnavailableException;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

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
    private static final int LONGEST_NOT_READY_TIMER = 12;
    private static final int MAX_RETRIES_NOT_READY = 7;
    private static final int MAX_HOPS = 255;
    private static final int UDP_PORTS_OF_ROCE = 0xc000;
    private static final long ADDRESS_VECTOR_OBJECT = 1 << 5;
    private static final int MAC_BYTES = 6;

    private final RdmaDevice device;
    private final int port;
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
            int port,
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
            QueueMemory memory, Place place, int numEntries, DoorbellRegister doorbell, int port) {
        RdmaDevice device = memory.device();
        try (Arena arena = Arena.ofConfined()) {
            Command ofCompletions =
                    completionQueue(arena, device, memory, place, numEntries, doorbell);
            MemorySegment completions = device.create("completion queue", ofCompletions);
            try {
                Command command =
                        Command.ofQueue(arena, Command.CREATE_QUEUE_PAIR)
                                .set(Command.Pair.MEMORY, memory.number())
                                .set(Command.Pair.MEMORY_OFFSET, place.entries())
                                .set(Command.Pair.MEMORY_VALID, 1)
                                .set(Command.Pair.PATH_STATE, Command.Pair.MIGRATED)
                                .set(Command.Pair.DOMAIN, device.domainNumber())
                                .set(Command.Pair.DOORBELL_PAGE, doorbell.page())
                                .set(Command.Pair.RECEIVE_TYPE, Command.Pair.NO_RECEIVES)
                                .set(Command.Pair.LOG_ENTRIES, log(numEntries))
                                .set(Command.Pair.RECORD_VALID, 1)
                                .set(Command.Pair.RECORD_MEMORY, memory.number())
                                .set(Command.Pair.RECORD_OFFSET, place.record());
                long queue = ofCompletions.get(Command.NUMBER);
                command.set(Command.Pair.SEND_COMPLETIONS, queue)
                        .set(Command.Pair.RECEIVE_COMPLETIONS, queue);
                MemorySegment pair = device.create("queue pair", command);
                return new QueuePair(
                        device, port, completions, pair, (int) command.get(Command.NUMBER));
            } catch (RuntimeException e) {
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
                .set(Command.Completions.MEMORY, memory.number())
                .set(Command.Completions.MEMORY_OFFSET, place.completions())
                .set(Command.Completions.MEMORY_VALID, 1)
                .set(Command.Completions.COLLAPSED, 1)
                .set(Command.Completions.IGNORE_OVERRUN, 1)
                .set(Command.Completions.LOG_ENTRIES, log(numEntries))
                .set(Command.Completions.DOORBELL_PAGE, doorbell.page())
                .set(Command.Completions.EVENT_QUEUE, device.eventQueue())
                .set(Command.Completions.RECORD_VALID, 1)
                .set(Command.Completions.RECORD_MEMORY, memory.number())
                .set(Command.Completions.RECORD_OFFSET, place.completionRecord());
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
                            .set(Command.Pair.WRITE_ACCESS, 1)
                            .set(Command.Pair.ATOMIC_ACCESS, 1)
                            .set(Command.Pair.ATOMIC_MODE, Command.Pair.ATOMICS_UP_TO_8_BYTES)
                            .set(Command.Pair.PORT, port)
                            .set(Command.Pair.PATH_STATE, Command.Pair.MIGRATED));
            Command toReceive =
                    change(arena, Command.INIT_TO_RECEIVE)
                            .set(Command.Pair.MTU, Paths.mtu(path, own.mtu(), peer.mtu()))
                            .set(Command.Pair.LOG_MAX_MESSAGE, LOG_MAX_MESSAGE)
                            .set(Command.Pair.PEER, peerNumber)
                            .set(Command.Pair.MIN_NOT_READY_TIMER, LONGEST_NOT_READY_TIMER)
                            .set(
                                    Command.Pair.LOG_ATOMICS_TAKEN,
                                    log(device.facts().maxAtomicsTaken()))
                            .set(Command.Pair.ADAPTIVE_ROUTING, path.adaptiveRouting() ? 1 : 0);
            address(toReceive, own, peer, path);
            change(toReceive);
            change(
                    change(arena, Command.RECEIVE_TO_SEND)
                            .set(
                                    Command.Pair.LOG_ATOMICS_SENT,
                                    log(device.facts().maxAtomicsSent()))
                            .set(Command.Pair.RETRIES, path.retries())
                            .set(Command.Pair.RETRIES_NOT_READY, MAX_RETRIES_NOT_READY)
                            .set(Command.Pair.ACK_TIMEOUT, path.ackTimeout()));
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
            command.set(Command.Pair.LID, peer.lid())
                    .set(Command.Pair.TRAFFIC_CLASS, path.quality().trafficClass())
                    .set(Command.Pair.SERVICE_LEVEL, path.quality().serviceLevel());
            return;
        }
        command.set(Command.Pair.GID_INDEX, own.gid().idx())
                .set(Command.Pair.GID_HIGH, peer.gid().high())
                .set(Command.Pair.GID_LOW, peer.gid().low())
                .set(Command.Pair.HOP_LIMIT, MAX_HOPS)
                .set(Command.Pair.ETHERNET_PRIORITY, path.quality().serviceLevel() & 7)
                .set(Command.Pair.MAC, mac(own, peer, path));
        if (own.isVersion2()) {
            // Switches spread connections over links by this port.
            command.set(Command.Pair.UDP_PORT, UDP_PORTS_OF_ROCE | (number & 0x3fff))
                    .set(Command.Pair.DSCP, path.quality().trafficClass() >>> 2);
        } else {
            command.set(Command.Pair.TRAFFIC_CLASS, path.quality().trafficClass());
        }
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
            RdmaStructs.AH_PORT.set(attributes, port);
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
                long value = 0;
                for (int i = 0; i < MAC_BYTES; i++) {
                    value =
                            value << Byte.SIZE
                                    | Byte.toUnsignedLong(mac.get(ValueLayout.JAVA_BYTE, i));
                }
                return value;
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
