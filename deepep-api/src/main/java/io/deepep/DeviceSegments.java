package io.deepep;

import java.lang.foreign.MemorySegment;

/**
 * Represents device memory as segments, so that slicing is bounds-checked as on the host. {@link
 * Tensor#segment()} never returns such a segment, because reading it from Java would crash the
 * process.
 */
final class DeviceSegments {
    private DeviceSegments() {}

    @SuppressWarnings("restricted")
    static MemorySegment of(long address, long numBytes) {
        return MemorySegment.ofAddress(address).reinterpret(numBytes);
    }
}
