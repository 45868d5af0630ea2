package io.deepep.testkit.nic;

import io.deepep.testkit.nic.WorkRequest.FetchAdd;
import io.deepep.testkit.nic.WorkRequest.InlineWrite;
import io.deepep.testkit.nic.WorkRequest.Write;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.function.Consumer;

/**
 * One connected queue pair as the card sees it. Entries are executed in order; an entry that fails
 * ends that: those after it are flushed, which their completions say.
 *
 * <p>Checks what device code owes the card: the record is written before the doorbell, entries
 * before the record, none over one that is not executed, every bit of them.
 */
final class QueuePair {
    private static final VarHandle RECORD =
            ValueLayout.JAVA_INT.withOrder(ByteOrder.BIG_ENDIAN).varHandle();
    private static final VarHandle DOORBELL =
            ValueLayout.JAVA_LONG.withOrder(ByteOrder.BIG_ENDIAN).varHandle();
    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
    private static final int INDEX_MASK = 0xffff;

    private final int number;
    private final QueueMemory memory;
    private final RegisteredMemory local;
    private final RegisteredMemory remote;
    private final NicFaults faults;
    private final Consumer<WorkEntry> trace;
    private final byte[] block = new byte[WorkEntry.BYTES];

    /** Completions that are not written yet, with the turn at which they are. */
    private final Queue<Due> due = new ArrayDeque<>();

    private long lastDoorbell;
    private long executed;
    private long written;
    private boolean failed;

    private record Due(Completion completion, long turn) {}

    QueuePair(
            int number,
            QueueMemory memory,
            RegisteredMemory local,
            RegisteredMemory remote,
            NicFaults faults,
            Consumer<WorkEntry> trace) {
        this.number = number;
        this.memory = memory;
        this.local = local;
        this.remote = remote;
        this.faults = faults;
        this.trace = trace;
    }

    /** Looks at the doorbell; true if there is something to execute. */
    boolean hasWork() {
        long doorbell = (long) DOORBELL.getAcquire(memory.doorbell(), 0L);
        if (doorbell != lastDoorbell) {
            lastDoorbell = doorbell;
            ring(doorbell);
        }
        return executed < written;
    }

    private void ring(long doorbell) {
        int rung = (int) (doorbell >>> 40) & INDEX_MASK;
        if (doorbell != ((long) rung << 40 | (long) number << 8)) {
            throw new NicMisuseException(
                    "doorbell %016x of queue pair 0x%x: should be 00 index:16 00 queue:24 00"
                            .formatted(doorbell, number));
        }
        int record = (int) RECORD.getAcquire(memory.record(), (long) Integer.BYTES);
        if (record >>> 16 != 0) {
            throw new NicMisuseException(
                    "record %08x of queue pair 0x%x: should be 16 bits".formatted(record, number));
        }
        if ((record - rung & INDEX_MASK) > memory.numEntries()) {
            throw new NicMisuseException(
                    "queue pair 0x%x: doorbell for entry %d, but the record says %d"
                            .formatted(number, rung, record));
        }
        written += record - written & INDEX_MASK;
        if (written - executed > memory.numEntries()) {
            throw new NicMisuseException(
                    "queue pair 0x%x: entries up to %d written, but %d of %d not executed"
                            .formatted(number, written, written - executed, memory.numEntries()));
        }
    }

    /**
     * Executes the next entry.
     *
     * @param turn of the card now
     * @param delay turns until its completion may be written
     */
    void execute(long turn, long delay) {
        long slot = (executed & (memory.numEntries() - 1)) * WorkEntry.BYTES;
        MemorySegment.copy(
                memory.entries(), ValueLayout.JAVA_BYTE, slot, block, 0, WorkEntry.BYTES);
        WorkEntry entry = WorkEntry.decode(block, executed);
        if (entry.queue() != number) {
            throw new NicMisuseException(
                    "entry %d of queue pair 0x%x names queue pair 0x%x"
                            .formatted(executed, number, entry.queue()));
        }
        trace.accept(entry);
        int syndrome = syndrome(entry);
        // What this entry wrote comes before what the next will, and before its completion.
        VarHandle.releaseFence();
        if (syndrome != 0 || entry.wantsCompletion()) {
            Completion completion = new Completion(executed, number, entry.opcode(), syndrome);
            due.add(new Due(completion, turn + delay));
        }
        executed++;
    }

    private int syndrome(WorkEntry entry) {
        int injected = faults.syndrome(number, executed);
        int syndrome =
                failed
                        ? Completion.WORK_REQUEST_FLUSHED
                        : injected != 0 ? injected : perform(entry.request());
        failed |= syndrome != 0;
        return syndrome;
    }

    private int perform(WorkRequest request) {
        return switch (request) {
            case Write write -> perform(write);
            case InlineWrite write -> perform(write);
            case FetchAdd add -> perform(add);
        };
    }

    private int perform(Write write) {
        MemorySegment from = local.find(write.localKey(), write.localAddress(), write.numBytes());
        MemorySegment to = remote.find(write.remoteKey(), write.remoteAddress(), write.numBytes());
        if (from == null || to == null) {
            return from == null
                    ? Completion.LOCAL_PROTECTION_ERROR
                    : Completion.REMOTE_ACCESS_ERROR;
        }
        to.copyFrom(from);
        return 0;
    }

    private int perform(InlineWrite write) {
        byte[] bytes = write.bytes();
        MemorySegment to = remote.find(write.remoteKey(), write.remoteAddress(), bytes.length);
        if (to == null) {
            return Completion.REMOTE_ACCESS_ERROR;
        }
        MemorySegment from = MemorySegment.ofArray(bytes);
        if (bytes.length == Long.BYTES && to.address() % Long.BYTES == 0) {
            // Whoever polls it never sees a part.
            LONG.setRelease(to, 0L, from.get(ValueLayout.JAVA_LONG_UNALIGNED, 0));
        } else {
            to.copyFrom(from);
        }
        return 0;
    }

    private int perform(FetchAdd add) {
        MemorySegment landing = local.find(add.localKey(), add.localAddress(), Long.BYTES);
        MemorySegment to = remote.find(add.remoteKey(), add.remoteAddress(), Long.BYTES);
        if (landing == null || to == null) {
            return landing == null
                    ? Completion.LOCAL_PROTECTION_ERROR
                    : Completion.REMOTE_ACCESS_ERROR;
        }
        if (add.remoteAddress() % Long.BYTES != 0) {
            return Completion.REMOTE_INVALID_REQUEST;
        }
        landing.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, (long) LONG.getAndAdd(to, 0L, add.value()));
        return 0;
    }

    /** Writes the completions that are due; true if some are still to come. */
    boolean complete(long turn) {
        while (!due.isEmpty() && due.peek().turn() <= turn) {
            due.remove().completion().writeTo(memory.completion());
        }
        return !due.isEmpty();
    }
}
