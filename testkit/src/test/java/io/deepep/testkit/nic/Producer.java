package io.deepep.testkit.nic;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/** Writes entries as a device does, on the thread that steps the card. */
final class Producer {
    private static final ValueLayout.OfInt BIG_INT =
            ValueLayout.JAVA_INT.withOrder(ByteOrder.BIG_ENDIAN);
    private static final ValueLayout.OfLong BIG_LONG =
            ValueLayout.JAVA_LONG.withOrder(ByteOrder.BIG_ENDIAN);

    final int number;
    final int numEntries;
    final QueueMemory memory;
    private long next;

    Producer(Arena arena, int number, int numEntries) {
        this.number = number;
        this.numEntries = numEntries;
        this.memory =
                QueueMemory.in(arena.allocate(QueueMemory.numBytes(numEntries), 64), numEntries);
    }

    long next() {
        return next;
    }

    /** Entries that the card may be given before it completes more. */
    int room() {
        return numEntries - (int) (next - completed());
    }

    /** How many entries are completed, by the 16 bits there are. */
    long completed() {
        int word = memory.completion().get(BIG_INT, 60);
        if ((word >> 4 & 0xf) == 0xf) {
            return 0;
        }
        int behind = (int) (next - 1 - (word >>> 16)) & 0xffff;
        return next - behind;
    }

    int syndrome() {
        boolean failed = (memory.completion().get(BIG_INT, 60) >> 4 & 0xf) == 13;
        return failed ? memory.completion().get(ValueLayout.JAVA_BYTE, 55) : 0;
    }

    void write(WorkRequest request) {
        byte[] bits = new WorkEntry(next, number, true, request).encode();
        long at = next % numEntries * WorkEntry.BYTES;
        MemorySegment.copy(bits, 0, memory.entries(), ValueLayout.JAVA_BYTE, at, bits.length);
        next++;
    }

    void ring() {
        record(next);
        doorbell(next);
    }

    void record(long index) {
        memory.record().set(BIG_INT, 4, (int) index & 0xffff);
    }

    void doorbell(long index) {
        memory.doorbell().set(BIG_LONG, 0, (index & 0xffff) << 40 | (long) number << 8);
    }
}
