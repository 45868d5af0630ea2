package io.deepep.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;

/**
 * A kernel's arguments, kept off-heap and used again: setting one allocates nothing. A launch
 * copies them, so they may be changed as soon as it returns. One thread at a time.
 *
 * <p>Either one struct that the kernel takes by value, written through {@link #segment()} or by
 * byte offset, or a list of arguments, written at the offsets that {@link #offset} tells.
 */
public final class KernelParams {
    private final MemorySegment block;
    private final MemorySegment pointers;
    private final long[] offsets;

    private KernelParams(Arena arena, MemoryLayout... layouts) {
        offsets = new long[layouts.length];
        long end = 0;
        long alignment = 1;
        for (int i = 0; i < offsets.length; i++) {
            MemoryLayout layout = layouts[i];
            offsets[i] = Math.ceilDiv(end, layout.byteAlignment()) * layout.byteAlignment();
            end = offsets[i] + layout.byteSize();
            alignment = Math.max(alignment, layout.byteAlignment());
        }
        block = arena.allocate(Math.max(end, 1), alignment);
        pointers = arena.allocate(ADDRESS, Math.max(offsets.length, 1));
        for (int i = 0; i < offsets.length; i++) {
            pointers.setAtIndex(ADDRESS, i, block.asSlice(offsets[i]));
        }
    }

    /** One struct, zeroed, in memory that lives as long as {@code arena}. */
    public static KernelParams struct(Arena arena, long numBytes) {
        MemoryLayout bytes = MemoryLayout.sequenceLayout(numBytes, JAVA_BYTE);
        return new KernelParams(arena, bytes.withByteAlignment(Long.BYTES));
    }

    /** Several arguments, zeroed; pointers are {@code JAVA_LONG}. */
    public static KernelParams arguments(Arena arena, MemoryLayout... layouts) {
        return new KernelParams(arena, layouts);
    }

    /** All arguments as one block. */
    public MemorySegment segment() {
        return block;
    }

    /** Where argument {@code idx} begins in the block. */
    public long offset(int idx) {
        return offsets[idx];
    }

    /** Writes a 32-bit field at a byte offset. */
    public KernelParams setInt(long offset, int value) {
        block.set(JAVA_INT, offset, value);
        return this;
    }

    /** Writes a 64-bit field or a pointer at a byte offset. */
    public KernelParams setLong(long offset, long value) {
        block.set(JAVA_LONG, offset, value);
        return this;
    }

    /** The array of argument addresses a launch takes. */
    MemorySegment pointers() {
        return pointers;
    }
}
