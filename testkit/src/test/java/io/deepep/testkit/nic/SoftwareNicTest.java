package io.deepep.testkit.nic;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.deepep.testkit.nic.WorkRequest.FetchAdd;
import io.deepep.testkit.nic.WorkRequest.InlineWrite;
import io.deepep.testkit.nic.WorkRequest.Write;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import net.jqwik.api.EdgeCasesMode;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.junit.jupiter.api.Test;

/** The card against queues that plain Java writes. */
class SoftwareNicTest {
    private static final int KEY = 0x1000;
    private static final int PEER_KEY = 0x2000;
    private static final long LOCAL_BASE = 0x7f00_0000_0000L;
    private static final long REMOTE_BASE = 0x7e00_0000_0000L;
    private static final int BYTES = 1 << 12;

    private final Arena arena = Arena.ofAuto();
    private final MemorySegment local = arena.allocate(BYTES, 64);
    private final MemorySegment remote = arena.allocate(BYTES, 64);
    private final NicFaults faults = new NicFaults();
    private final List<WorkEntry> trace = new ArrayList<>();
    private final SoftwareNic nic = new SoftwareNic(faults, 1, trace::add);

    private Producer connect(int number, int numEntries) {
        Producer producer = new Producer(arena, number, numEntries);
        nic.connect(
                number,
                producer.memory,
                new RegisteredMemory(KEY, LOCAL_BASE, local),
                new RegisteredMemory(PEER_KEY, REMOTE_BASE, remote));
        return producer;
    }

    private void finish() {
        int turns = 0;
        while (nic.doWork()) {
            assertThat(++turns).isLessThan(100_000);
        }
    }

    private static Write write(long to, long from, int numBytes) {
        return new Write(REMOTE_BASE + to, PEER_KEY, LOCAL_BASE + from, KEY, numBytes);
    }

    @Test
    void executesEachKind() {
        Producer queue = connect(0x77, 64);
        local.setAtIndex(ValueLayout.JAVA_LONG, 3, 42);
        remote.setAtIndex(ValueLayout.JAVA_LONG, 10, 5);
        queue.write(write(0, 24, 8));
        queue.write(new InlineWrite(REMOTE_BASE + 8, PEER_KEY, "0900000000000000"));
        queue.write(new FetchAdd(REMOTE_BASE + 80, PEER_KEY, 7, LOCAL_BASE + 800, KEY));
        finish();
        assertThat(trace).as("before the doorbell").isEmpty();
        queue.ring();
        finish();
        assertThat(remote.getAtIndex(ValueLayout.JAVA_LONG, 0)).isEqualTo(42);
        assertThat(remote.getAtIndex(ValueLayout.JAVA_LONG, 1)).isEqualTo(9);
        assertThat(remote.getAtIndex(ValueLayout.JAVA_LONG, 10)).isEqualTo(12);
        assertThat(local.getAtIndex(ValueLayout.JAVA_LONG, 100)).isEqualTo(5);
        assertThat(queue.completed()).isEqualTo(3);
    }

    /**
     * Three queues, each with writes of its own part of the memory, against the same done at once.
     */
    @Property(tries = 40, edgeCases = EdgeCasesMode.NONE)
    void queuesKeepTheirOrder(@ForAll long seed, @ForAll @IntRange(max = 50) int delay) {
        new SoftwareNicTest().writeInThreeQueues(seed, delay);
    }

    private void writeInThreeQueues(long seed, int delay) {
        faults.delayCompletions(delay);
        Random random = new Random(seed);
        local.copyFrom(MemorySegment.ofArray(random.ints(BYTES / 4).toArray()));
        MemorySegment expected = arena.allocate(BYTES);
        List<Producer> queues = List.of(connect(1, 64), connect(2, 128), connect(0xffffff, 64));
        int part = BYTES / 4;
        for (int round = 0; round < 300; round++) {
            Producer queue = queues.get(random.nextInt(queues.size()));
            long begin = (long) part * queues.indexOf(queue);
            if (queue.room() == 0) {
                nic.doWork();
                continue;
            }
            int numBytes = 1 + random.nextInt(64);
            long to = begin + random.nextInt(part - numBytes);
            long from = random.nextInt(BYTES - numBytes);
            queue.write(write(to, from, numBytes));
            MemorySegment.copy(local, from, expected, to, numBytes);
            if (random.nextInt(4) == 0) {
                queue.ring();
            }
        }
        queues.forEach(Producer::ring);
        finish();
        assertThat(remote.mismatch(expected)).isEqualTo(-1);
        queues.forEach(queue -> assertThat(queue.completed()).isEqualTo(queue.next()));
    }

    @Test
    void indicesWrapAround() {
        Producer queue = connect(5, 64);
        for (int i = 0; i < 70_000; i++) {
            queue.write(new FetchAdd(REMOTE_BASE, PEER_KEY, 1, LOCAL_BASE, KEY));
            if (queue.room() == 0) {
                queue.ring();
                finish();
                assertThat(queue.completed()).isEqualTo(queue.next());
            }
        }
        queue.ring();
        finish();
        assertThat(remote.get(ValueLayout.JAVA_LONG, 0)).isEqualTo(70_000);
    }

    @Test
    void completionsOfOtherQueuesOvertake() {
        faults.delayCompletions(30);
        List<Producer> queues = List.of(connect(1, 64), connect(2, 64));
        boolean secondWasAhead = false;
        for (int i = 0; i < 200 && !secondWasAhead; i++) {
            for (Producer queue : queues) {
                queue.write(write(0, 0, 1));
                queue.ring();
            }
            while (nic.doWork()) {
                secondWasAhead |= queues.get(1).completed() > queues.get(0).completed();
            }
        }
        assertThat(secondWasAhead).isTrue();
    }

    @Test
    void keysGuardMemory() {
        Producer remoteKey = connect(1, 64);
        remoteKey.write(new Write(REMOTE_BASE, PEER_KEY + 1, LOCAL_BASE, KEY, 8));
        Producer localKey = connect(2, 64);
        localKey.write(new Write(REMOTE_BASE, PEER_KEY, LOCAL_BASE, KEY + 1, 8));
        Producer beyond = connect(3, 64);
        beyond.write(write(BYTES - 7, 0, 8));
        Producer odd = connect(4, 64);
        odd.write(new FetchAdd(REMOTE_BASE + 4, PEER_KEY, 1, LOCAL_BASE, KEY));
        List.of(remoteKey, localKey, beyond, odd).forEach(Producer::ring);
        finish();
        assertThat(remoteKey.syndrome()).isEqualTo(Completion.REMOTE_ACCESS_ERROR);
        assertThat(localKey.syndrome()).isEqualTo(Completion.LOCAL_PROTECTION_ERROR);
        assertThat(beyond.syndrome()).isEqualTo(Completion.REMOTE_ACCESS_ERROR);
        assertThat(odd.syndrome()).isEqualTo(Completion.REMOTE_INVALID_REQUEST);
    }

    @Test
    void whatFollowsAFailureIsFlushed() {
        Producer queue = connect(1, 64);
        faults.fail(1, 1, 0x15);
        for (int i = 0; i < 2; i++) {
            queue.write(new FetchAdd(REMOTE_BASE, PEER_KEY, 1, LOCAL_BASE, KEY));
        }
        queue.ring();
        finish();
        assertThat(queue.syndrome()).isEqualTo(0x15);
        queue.write(new FetchAdd(REMOTE_BASE, PEER_KEY, 1, LOCAL_BASE, KEY));
        queue.ring();
        finish();
        assertThat(queue.syndrome()).isEqualTo(Completion.WORK_REQUEST_FLUSHED);
        assertThat(remote.get(ValueLayout.JAVA_LONG, 0)).isEqualTo(1);
    }

    @Test
    void stoppedCardExecutesNothing() {
        Producer queue = connect(1, 64);
        faults.stop(true);
        queue.write(write(0, 0, 1));
        queue.ring();
        finish();
        assertThat(trace).isEmpty();
        faults.stop(false);
        finish();
        assertThat(trace).hasSize(1);
    }

    @Test
    void misuseIsNamed() {
        Producer behind = connect(1, 64);
        behind.write(write(0, 0, 1));
        behind.doorbell(1);
        assertMisuse("doorbell for entry 1, but the record says 0");
        behind.ring();
        finish();

        Producer over = connect(2, 64);
        over.record(65);
        over.doorbell(65);
        assertMisuse("65 of 64 not executed");
    }

    @Test
    void unwrittenEntryIsMisuse() {
        Producer queue = connect(1, 64);
        queue.record(1);
        queue.doorbell(1);
        assertMisuse("opcode 0x00 is unknown");
    }

    @Test
    void entryOfAnotherQueueIsMisuse() {
        Producer queue = connect(1, 64);
        byte[] bits = new WorkEntry(0, 2, true, write(0, 0, 1)).encode();
        queue.memory.entries().copyFrom(MemorySegment.ofArray(bits));
        queue.record(1);
        queue.doorbell(1);
        assertMisuse("entry 0 of queue pair 0x1 names queue pair 0x2");
    }

    private void assertMisuse(String message) {
        assertThatThrownBy(this::finish)
                .isInstanceOf(NicMisuseException.class)
                .hasMessageContaining(message);
    }
}
