package io.deepep.normal.host;

import io.deepep.DType;
import io.deepep.Tensor;
import io.deepep.host.HostMemory;
import io.deepep.spi.TensorMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Memory of a result that grows with what arrives, left to the garbage collector. */
final class HostOutputMemory implements TensorMemory {
    private MemorySegment segment = MemorySegment.NULL;

    @Override
    public Tensor tensor(long numBytes, DType dtype, long... shape) {
        if (segment.byteSize() < numBytes || segment.byteSize() == 0) {
            long room = segment.byteSize() == 0 ? numBytes : Math.addExact(numBytes, numBytes / 4);
            segment = HostMemory.allocate(Arena.ofAuto(), room);
        }
        return Tensor.of(segment, dtype, shape);
    }
}
