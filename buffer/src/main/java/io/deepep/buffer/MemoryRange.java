package io.deepep.buffer;

import io.deepep.Tensor;

/**
 * Addresses of one device.
 *
 * @param start the first
 * @param end the one behind the last
 */
record MemoryRange(long start, long end) {
    static final MemoryRange NONE = new MemoryRange(0, 0);

    static MemoryRange at(long address, long numBytes) {
        return new MemoryRange(address, address + numBytes);
    }

    /** From the first element to the last, with what lies between. */
    private static MemoryRange of(Tensor tensor) {
        return at(tensor.address(), tensor.extentBytes());
    }

    private boolean overlaps(MemoryRange other) {
        return Math.max(start, other.start) < Math.min(end, other.end);
    }

    boolean overlaps(Tensor tensor) {
        return overlaps(of(tensor));
    }

    /** Whether an element of {@code a} can be one of {@code b}. */
    static boolean overlap(Tensor a, Tensor b) {
        return a.device().equals(b.device()) && of(a).overlaps(of(b)) && !areBesides(a, b);
    }

    /** Whether both are columns of one matrix, and not the same ones. */
    private static boolean areBesides(Tensor a, Tensor b) {
        if (a.rank() != 2 || b.rank() != 2 || a.stride(1) != 1 || b.stride(1) != 1) {
            return false;
        }
        long pitch = a.stride(0) * a.dtype().sizeBytes();
        if (pitch == 0 || pitch != b.stride(0) * b.dtype().sizeBytes()) {
            return false;
        }
        long distance = Math.floorMod(b.address() - a.address(), pitch);
        return a.size(1) * a.dtype().sizeBytes() <= distance
                && distance + b.size(1) * b.dtype().sizeBytes() <= pitch;
    }
}
