package io.deepep.cuda.ibgda;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;

/** A completion as the host reads it: see {@code deepep/mlx5.cuh}. */
final class Completion {
    /** Of an index there. */
    static final long INDEX_MASK = 0xffff;

    private static final long LAST_WORD_AT = 56;
    private static final long VENDOR_SYNDROME_AT = 54;
    private static final long SYNDROME_AT = 55;
    private static final int DONE = 0;
    private static final int REQUEST_ERROR = 13;
    private static final int RESPONSE_ERROR = 14;
    private static final int MASKED_SWAP = 0x14;

    private Completion() {}

    /** The last 8 bytes, as a number: opcode, queue, index, signature, kind. */
    private static long word(MemorySegment completion) {
        // acquire; the network card writes them last, and in one piece
        return Long.reverseBytes((long) JAVA_LONG.varHandle().getAcquire(completion, LAST_WORD_AT));
    }

    private static int kind(long word) {
        return (int) (word >>> 4 & 0xf);
    }

    static boolean isError(MemorySegment completion) {
        int kind = kind(word(completion));
        return kind == REQUEST_ERROR || kind == RESPONSE_ERROR;
    }

    /** Index of the first block of its entry. */
    static int index(MemorySegment completion) {
        return (int) (word(completion) >>> 16 & INDEX_MASK);
    }

    /** Index behind its entry; -1 if it is none of success. */
    static long end(MemorySegment completion) {
        long word = word(completion);
        int blocks = word >>> 56 == MASKED_SWAP ? 2 : 1;
        return kind(word) == DONE ? (word >>> 16) + blocks & INDEX_MASK : -1;
    }

    static int syndrome(MemorySegment completion) {
        return Byte.toUnsignedInt(completion.get(JAVA_BYTE, SYNDROME_AT));
    }

    static int vendorSyndrome(MemorySegment completion) {
        return Byte.toUnsignedInt(completion.get(JAVA_BYTE, VENDOR_SYNDROME_AT));
    }
}
