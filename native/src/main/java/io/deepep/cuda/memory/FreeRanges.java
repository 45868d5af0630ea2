package io.deepep.cuda.memory;

import java.util.Map;
import java.util.TreeMap;

/** The free parts of a range of bytes. Neighbours that are free become one. */
final class FreeRanges {
    /** Size by offset. */
    private final TreeMap<Long, Long> sizes = new TreeMap<>();

    private final long numBytes;

    /** All of {@code [0, numBytes)} is free. */
    FreeRanges(long numBytes) {
        this.numBytes = numBytes;
        sizes.put(0L, numBytes);
    }

    /**
     * The offset of {@code size} bytes that are free no longer, the lowest there is; -1 if none.
     */
    long take(long size) {
        long offset = find(size);
        if (offset >= 0) {
            long left = sizes.remove(offset) - size;
            if (left > 0) {
                sizes.put(offset + size, left);
            }
        }
        return offset;
    }

    private long find(long size) {
        return sizes.entrySet().stream()
                .filter(range -> range.getValue() >= size)
                .findFirst()
                .map(Map.Entry::getKey)
                .orElse(-1L);
    }

    /** Gives back what {@link #take} gave out. */
    void giveBack(long offset, long size) {
        long begin = offset;
        long end = offset + size;
        Map.Entry<Long, Long> before = sizes.floorEntry(offset);
        if (before != null && before.getKey() + before.getValue() == begin) {
            begin = before.getKey();
        }
        Long after = sizes.remove(end);
        if (after != null) {
            end += after;
        }
        sizes.put(begin, end - begin);
    }

    /** Whether nothing is taken. */
    boolean isWhole() {
        return sizes.size() == 1 && sizes.getOrDefault(0L, 0L) == numBytes;
    }
}
