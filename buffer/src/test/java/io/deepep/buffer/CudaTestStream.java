package io.deepep.buffer;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.deepep.Device;
import io.deepep.Stream;
import io.deepep.Tensor;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.memory.PinnedMemory;
import io.deepep.testkit.TestStream;

/** A {@link CudaStream} of an engine. Made while no kernel of the GPU waits for another rank. */
final class CudaTestStream implements TestStream {
    private final CudaStream stream;

    /** The same as engines give it: by its handle. */
    private final Stream given;

    /** A word that the stream waits for; kept, because freeing it would wait for all kernels. */
    private final PinnedMemory gate;

    private int numHolds;

    CudaTestStream(Device device) {
        CudaContext context = CudaContext.shared(CudaDevice.of(device.index()));
        stream = CudaStream.create(context);
        given = Stream.cuda(device, stream.cudaHandle());
        gate = PinnedMemory.allocate(context, Integer.BYTES);
    }

    @Override
    public Stream stream() {
        return given;
    }

    @Override
    public void copy(Tensor from, Tensor to) {
        stream.copy(to.address(), from.address(), from.numElements() * from.dtype().sizeBytes());
    }

    @Override
    public Runnable hold() {
        int hold = ++numHolds;
        stream.waitForInt(gate.deviceAddress(), hold);
        return () -> JAVA_INT.varHandle().setRelease(gate.segment(), 0L, hold);
    }

    @Override
    public void close() {
        stream.close();
    }
}
