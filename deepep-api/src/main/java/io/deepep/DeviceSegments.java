package io.deepep;

import java.lang.foreign.MemorySegment;

/**
 * Address and size of device memory in the shape of a segment, so that slicing is bounds checked
 * like on the host. {@link Tensor#segment()} never hands such a segment out, because reading it
 * from Java would end the process.
 */
final class DeviceSegments {
    private DeviceSegments() {}

    @SuppressWarnings("restricted")
    static MemorySegment of(long address, long numBytes) {
        return MemorySegment.ofAddress(address).reinterpret(numBytes);
    }
}
