package io.deepep.cuda.ibgda;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.cuda.kernel.KernelStruct;
import io.deepep.cuda.kernel.KernelStruct.Params;
import io.deepep.cuda.kernel.NetworkStructs;
import io.deepep.error.NativeCallException;
import io.deepep.testkit.nic.NicFaults;
import io.deepep.testkit.nic.SoftwareNic;
import io.deepep.testkit.nic.WorkEntry;
import io.deepep.testkit.nic.WorkRequest;
import io.deepep.testkit.nic.WorkRequest.FetchAdd;
import io.deepep.testkit.nic.WorkRequest.InlineWrite;
import io.deepep.testkit.nic.WorkRequest.Write;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The policy {@code Ibgda} against the software network card, wherever its code runs. */
abstract class IbgdaConformance {
    private static final long NETWORK_BYTES = 1 << 16;
    private static final Duration LONG = Duration.ofSeconds(20);
    private static final Duration SHORT = Duration.ofMillis(150);

    /** One cell a node. */
    private static final long SLOTS = 0;

    private static final long SLOTS_STRIDE = 16_384;
    private static final long FLAGS = 3 * SLOTS_STRIDE;
    private static final long ACKS = FLAGS + 1024;
    private static final long SMALL_STRIDE = 256;

    private final Arena arena = Arena.ofShared();
    private final NicFaults faults = new NicFaults();
    private final ConcurrentLinkedQueue<WorkEntry> trace = new ConcurrentLinkedQueue<>();
    private final List<MemorySegment> commands = new ArrayList<>();
    private NicDevice device;
    private SoftwareNic nic;
    private NicGroup group;

    abstract NicDevice openDevice() throws Exception;

    @BeforeEach
    void open() throws Exception {
        device = openDevice();
        nic = new SoftwareNic(faults, 7, trace::add);
    }

    @AfterEach
    void close() {
        if (device != null) {
            nic.close();
            device.close();
        }
    }

    private void connect(int numNodes, int queuesPerNode, int numEntries, Duration timeout) {
        var shape = new NicGroup.Shape(numNodes, queuesPerNode, numEntries, timeout);
        group = new NicGroup(nic, shape, NETWORK_BYTES, NETWORK_BYTES, device::allocate, device);
        nic.start();
    }

    /** A call of the policy, by node 0. */
    private Command command(int kind, int node) {
        return new Command(kind, node);
    }

    private final class Command {
        private final MemorySegment memory = arena.allocate(NicCheckStructs.COMMAND.numBytes(), 8);

        Command(int kind, int node) {
            memory.set(JAVA_INT, NicCheckStructs.COMMAND.offset("kind"), kind);
            memory.set(JAVA_INT, NicCheckStructs.COMMAND.offset("node"), node);
            cells(memory, NicCheckStructs.COMMAND.offset("cells"), SLOTS, SLOTS_STRIDE);
            cells(memory, NicCheckStructs.COMMAND.offset("flags"), FLAGS, SMALL_STRIDE);
            commands.add(memory);
        }

        Command range(long offset, long stride, long numBytes, int numLanes) {
            return set("offset", offset)
                    .set("stride", stride)
                    .set("num_bytes", numBytes)
                    .set("num_lanes", numLanes);
        }

        Command flag(long offset, long value) {
            return set("flag_offset", offset).set("value", value);
        }

        private Command set(String field, long value) {
            memory.set(JAVA_LONG, NicCheckStructs.COMMAND.offset(field), value);
            return this;
        }
    }

    private static void cells(MemorySegment memory, long at, long offset, long stride) {
        memory.set(JAVA_LONG, at + NetworkStructs.CELLS.offset("offset"), offset);
        memory.set(JAVA_LONG, at + NetworkStructs.CELLS.offset("stride"), stride);
    }

    /** Runs the commands given since the last time, as node 0. */
    private void runCommands() {
        KernelStruct struct = NicCheckStructs.COMMAND;
        MemorySegment list = device.allocate(struct.numBytes() * commands.size());
        for (int i = 0; i < commands.size(); i++) {
            list.asSlice(struct.numBytes() * i).copyFrom(commands.get(i));
        }
        Params params = NicCheckStructs.SCRIPT.allocate(arena);
        group.fillNetwork(params.memory().segment(), NicCheckStructs.SCRIPT.offset("net"), 0);
        params.set("commands", list.address()).setInt("num_commands", commands.size());
        device.script(params);
        commands.clear();
    }

    private static byte[] longBytes(long value) {
        return ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(value).array();
    }

    /** What device code writes is what the format says, in every bit. */
    @Test
    void writesTheRightBits() {
        connect(2, 1, 64, LONG);
        int lanes = Math.min(3, device.numLanes());
        command(NicCheckStructs.PUT, 1).range(128, 1000, 777, lanes);
        command(NicCheckStructs.PUT_SIGNAL, 1).range(4096, 512, 512, lanes).flag(16, 1L << 40 | 5);
        command(NicCheckStructs.SIGNAL, 1).flag(8, 0x1122334455667788L);
        command(NicCheckStructs.ADD, 1).flag(0, -3);
        command(NicCheckStructs.QUIET, 0);
        runCommands();
        nic.check();
        List<WorkEntry> expected = new ArrayList<>();
        for (int lane = 0; lane < lanes; lane++) {
            expect(expected, lane == lanes - 1, put(128 + 1000L * lane, 777));
        }
        for (int lane = 0; lane < lanes; lane++) {
            expect(expected, false, put(4096 + 512L * lane, 512));
            long value = (1L << 40 | 5) + lane;
            expect(expected, lane == lanes - 1, flag(16 + 8L * lane, value));
        }
        expect(expected, true, flag(8, 0x1122334455667788L));
        expect(
                expected,
                true,
                new FetchAdd(
                        flagAddress(0), group.key(1), -3, group.landing(0, 1, 0), group.key(0)));
        assertThat(trace).containsExactlyElementsOf(expected);
        for (WorkEntry entry : expected) {
            byte[] bits = entry.encode();
            MemorySegment written = group.queueMemory(0, 1, 0).entries();
            byte[] device =
                    written.asSlice(entry.index() * WorkEntry.BYTES, bits.length)
                            .toArray(JAVA_BYTE);
            assertThat(HexFormat.of().formatHex(device))
                    .as("%s", entry)
                    .isEqualTo(HexFormat.of().formatHex(bits));
        }
    }

    private static void expect(List<WorkEntry> expected, boolean completion, WorkRequest request) {
        expected.add(new WorkEntry(expected.size(), NicGroup.number(0, 1, 0), completion, request));
    }

    /** Node 0 composes for node 1 in its outbox, past cell 1; node 1 finds it in its cell 0. */
    private Write put(long offset, int numBytes) {
        long from = group.memory(0).address() + SLOTS + SLOTS_STRIDE + group.outbox() + offset;
        long to = group.memory(1).address() + SLOTS + offset;
        return new Write(to, group.key(1), from, group.key(0), numBytes);
    }

    private long flagAddress(long offset) {
        return group.memory(1).address() + FLAGS + offset;
    }

    private InlineWrite flag(long offset, long value) {
        return InlineWrite.of(flagAddress(offset), group.key(1), longBytes(value));
    }

    @Test
    void movesData() {
        connect(2, 1, 64, LONG);
        MemorySegment outbox = group.memory(0).asSlice(group.outbox() + SLOTS_STRIDE, 1024);
        for (int i = 0; i < 128; i++) {
            outbox.setAtIndex(JAVA_LONG, i, 0x0102030405060708L * i);
        }
        command(NicCheckStructs.PUT_SIGNAL, 1).range(3, 0, 1000, 1).flag(8, 77);
        command(NicCheckStructs.ADD, 1).flag(8, 3);
        command(NicCheckStructs.QUIET, 0);
        runCommands();
        MemorySegment arrived = group.memory(1).asSlice(SLOTS, 1024);
        assertThat(arrived.asSlice(3, 1000).mismatch(outbox.asSlice(3, 1000))).isEqualTo(-1);
        assertThat(arrived.asSlice(0, 3).toArray(JAVA_BYTE)).containsOnly(0);
        assertThat(arrived.asSlice(1003, 21).toArray(JAVA_BYTE)).containsOnly(0);
        assertThat(group.memory(1).get(JAVA_LONG, FLAGS + 8)).isEqualTo(80);
        group.queues(0).check();
    }

    /** Data before flags, room in queues, every QP, with completions late and out of order. */
    @ParameterizedTest
    @CsvSource({"2, 1, 64, 0", "2, 2, 64, 40", "3, 4, 128, 10"})
    void exchanges(int numNodes, int queuesPerNode, int numEntries, int delay) {
        faults.delayCompletions(delay);
        connect(numNodes, queuesPerNode, numEntries, LONG);
        int numChannels = 4;
        MemorySegment errors = device.allocate(Long.BYTES);
        List<Params> byNode = new ArrayList<>();
        for (int node = 0; node < numNodes; node++) {
            byNode.add(exchangeParams(node, errors, 60));
        }
        device.exchange(byNode, numChannels);
        nic.check();
        for (int node = 0; node < numNodes; node++) {
            group.queues(node).check();
        }
        assertThat(errors.get(JAVA_LONG, 0)).isZero();
        for (int idx = 0; idx < queuesPerNode; idx++) {
            int number = NicGroup.number(0, 1, idx);
            assertThat(trace).as("of QP %s", idx).anyMatch(entry -> entry.queue() == number);
        }
    }

    private Params exchangeParams(int node, MemorySegment errors, int numRounds) {
        KernelStruct struct = NicCheckStructs.EXCHANGE;
        Params params = struct.allocate(arena);
        MemorySegment memory = params.memory().segment();
        group.fillNetwork(memory, struct.offset("net"), node);
        cells(memory, struct.offset("slots"), SLOTS, SLOTS_STRIDE);
        cells(memory, struct.offset("flags"), FLAGS, SMALL_STRIDE);
        cells(memory, struct.offset("acks"), ACKS, SMALL_STRIDE);
        return params.set("errors", errors.address())
                .set("timeout_ns", LONG.toNanos())
                .set("slot_bytes", 1024)
                .set("num_slots", 3)
                .setInt("num_rounds", numRounds);
    }

    @Test
    void errorCompletionNamesPeerAndSyndrome() {
        connect(3, 1, 64, LONG);
        faults.fail(NicGroup.number(0, 2, 0), 1, Syndrome.TRANSPORT_RETRY_EXCEEDED.code());
        command(NicCheckStructs.SIGNAL, 2).flag(0, 1);
        command(NicCheckStructs.SIGNAL, 1).flag(0, 2);
        command(NicCheckStructs.SIGNAL, 2).flag(8, 3);
        command(NicCheckStructs.QUIET, 0);
        command(NicCheckStructs.SIGNAL, 2).flag(16, 4);
        command(NicCheckStructs.SIGNAL, 1).flag(8, 5);
        command(NicCheckStructs.QUIET, 0);
        runCommands();
        assertThatThrownBy(() -> group.queues(0).check())
                .isInstanceOf(NativeCallException.class)
                .hasMessage(
                        "put failed on queue pair 0x10300 to rank 2: TRANSPORT_RETRY_EXCEEDED,"
                                + " vendor syndrome 0x0, at entry 1 (21)");
        assertThat(group.memory(2).get(JAVA_LONG, FLAGS)).isEqualTo(1);
        assertThat(group.memory(2).get(JAVA_LONG, FLAGS + 8)).as("failed").isZero();
        assertThat(group.memory(2).get(JAVA_LONG, FLAGS + 16)).as("not sent").isZero();
        assertThat(group.memory(1).get(JAVA_LONG, FLAGS + 8)).as("other QP").isEqualTo(5);
        group.queues(1).check();
    }

    /** Nothing is sent after it, and nobody waits for it. */
    @Test
    void errorCompletionThatNoKernelSaw() throws InterruptedException {
        connect(2, 1, 64, LONG);
        faults.fail(NicGroup.number(0, 1, 0), 0, Syndrome.TRANSPORT_RETRY_EXCEEDED.code());
        command(NicCheckStructs.SIGNAL, 1).flag(0, 1);
        runCommands();
        while (true) {
            try {
                group.queues(0).check();
            } catch (NativeCallException failed) {
                assertThat(failed)
                        .hasMessage(
                                "put failed on queue pair 0x10200 to rank 1:"
                                        + " TRANSPORT_RETRY_EXCEEDED, vendor syndrome 0x0, at entry 0 (21)");
                return;
            }
            Thread.sleep(1);
        }
    }

    @Test
    void rangeBeyondThePeersMemoryIsAnError() {
        connect(2, 1, 64, LONG);
        command(NicCheckStructs.PUT, 1).range(1 << 24, 0, 8, 1);
        command(NicCheckStructs.QUIET, 0);
        runCommands();
        assertThatThrownBy(() -> group.queues(0).check())
                .hasMessageContaining("to rank 1: LOCAL_PROTECTION_ERROR");
    }

    @Test
    void fullQueueWaitsForRoom() {
        faults.stop(true);
        connect(2, 1, 64, LONG);
        for (int i = 0; i < 200; i++) {
            command(NicCheckStructs.ADD, 1).flag(0, 1);
        }
        command(NicCheckStructs.QUIET, 0);
        CompletableFuture<Void> goesOn =
                CompletableFuture.runAsync(
                        () -> faults.stop(false),
                        CompletableFuture.delayedExecutor(100, TimeUnit.MILLISECONDS));
        runCommands();
        goesOn.join();
        group.queues(0).check();
        assertThat(group.memory(1).get(JAVA_LONG, FLAGS)).isEqualTo(200);
    }

    @Test
    void fullQueueThatStaysFullIsAnError() {
        faults.stop(true);
        connect(2, 1, 64, SHORT);
        for (int i = 0; i < 70; i++) {
            command(NicCheckStructs.ADD, 1).flag(0, 1);
        }
        runCommands();
        assertThatThrownBy(() -> group.queues(0).check())
                .isInstanceOf(NativeCallException.class)
                .hasMessageContaining("to rank 1: the queue stayed full: entry 0 did not complete");
    }

    @Test
    void quietThatDoesNotComeIsAnError() {
        faults.stop(true);
        connect(2, 1, 64, SHORT);
        command(NicCheckStructs.SIGNAL, 1).flag(0, 1);
        command(NicCheckStructs.SIGNAL, 1).flag(0, 2);
        command(NicCheckStructs.QUIET, 0);
        runCommands();
        assertThatThrownBy(() -> group.queues(0).check())
                .hasMessageContaining("to rank 1: entry 1 did not complete");
    }
}
