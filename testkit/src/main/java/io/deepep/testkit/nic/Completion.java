package io.deepep.testkit.nic;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * A completion: that of an entry and all before it in its queue.
 *
 * <pre>
 *   54  vendor's syndrome, of an error
 *   55  syndrome, of an error
 *   56  opcode of the entry &lt;&lt; 24 | queue
 *   60  16 bits of the entry's index
 *   62  signature
 *   63  opcode &lt;&lt; 4: 0 done, 13 error
 * </pre>
 *
 * @param index of the entry
 * @param entryOpcode what the entry asked for
 * @param syndrome 0 if it is done
 */
record Completion(long index, int queue, int entryOpcode, int syndrome) {
    static final int LOCAL_PROTECTION_ERROR = 0x04;
    static final int WORK_REQUEST_FLUSHED = 0x05;
    static final int REMOTE_INVALID_REQUEST = 0x12;
    static final int REMOTE_ACCESS_ERROR = 0x13;

    private static final int ERROR = 13;
    private static final ValueLayout.OfInt BIG_INT =
            ValueLayout.JAVA_INT.withOrder(ByteOrder.BIG_ENDIAN);
    private static final VarHandle WORD = BIG_INT.varHandle();

    /** Writes it over the one before; the last word, which announces it, at once and last. */
    void writeTo(MemorySegment memory) {
        memory.set(ValueLayout.JAVA_BYTE, 55, (byte) syndrome);
        memory.set(BIG_INT, 56, entryOpcode << 24 | queue);
        int opcode = syndrome == 0 ? 0 : ERROR;
        // release; pairs with the device's acquire of the word
        WORD.setRelease(memory, 60L, (int) (index & 0xffff) << 16 | opcode << 4);
    }
}
