package io.deepep.testkit.nic;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * What a queue pair and its user share.
 *
 * <pre>
 *   entries     [numEntries] of 64 bytes   the user writes, the card reads
 *   record      u32 [2]                    second: 16 bits of the index behind the last entry
 *   doorbell    u64                        the same index and the queue's number: read the record now
 *   completion  64 bytes                   the card writes: the latest completion, over the one before
 * </pre>
 *
 * @param entries a power of two of them
 */
public record QueueMemory(
        MemorySegment entries,
        MemorySegment record,
        MemorySegment doorbell,
        MemorySegment completion) {
    /** Bytes of a completion. */
    public static final int COMPLETION_BYTES = 64;

    private static final byte NO_COMPLETION = (byte) 0xf0;

    /** Zeroes it, and says that nothing is completed. */
    public QueueMemory {
        entries.fill((byte) 0);
        record.fill((byte) 0);
        doorbell.fill((byte) 0);
        completion.fill((byte) 0);
        completion.set(ValueLayout.JAVA_BYTE, COMPLETION_BYTES - 1, NO_COMPLETION);
    }

    /** Divides one piece of memory; {@link #numBytes} of it, aligned to 64. */
    public static QueueMemory in(MemorySegment memory, int numEntries) {
        long end = (long) WorkEntry.BYTES * numEntries;
        return new QueueMemory(
                memory.asSlice(0, end),
                memory.asSlice(end, 64),
                memory.asSlice(end + 64, 64),
                memory.asSlice(end + 128, COMPLETION_BYTES));
    }

    /** Bytes for {@link #in}. */
    public static long numBytes(int numEntries) {
        return (long) WorkEntry.BYTES * numEntries + 64 + 64 + COMPLETION_BYTES;
    }

    int numEntries() {
        return (int) (entries.byteSize() / WorkEntry.BYTES);
    }
}
