package io.deepep.testkit.nic;

import java.lang.foreign.MemorySegment;

/**
 * Memory that the card may reach: what a key stands for.
 *
 * @param key both the local and the remote key
 * @param base its first byte, as entries name it
 * @param memory as this process sees it
 */
public record RegisteredMemory(int key, long base, MemorySegment memory) {
    /** The part that an entry names; null where the key does not cover all of it. */
    MemorySegment find(int givenKey, long address, long numBytes) {
        long offset = address - base;
        boolean covered =
                givenKey == key
                        && numBytes > 0
                        && offset >= 0
                        && offset <= memory.byteSize() - numBytes;
        return covered ? memory.asSlice(offset, numBytes) : null;
    }
}
