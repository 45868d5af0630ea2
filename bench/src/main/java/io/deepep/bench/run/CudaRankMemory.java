package io.deepep.bench.run;

import io.deepep.Device;
import io.deepep.Tensor;
import io.deepep.cuda.CudaContext;
import io.deepep.cuda.CudaDevice;
import io.deepep.cuda.CudaStream;
import io.deepep.cuda.memory.CudaMemory;
import io.deepep.cuda.memory.DevicePool;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * Memory of one rank on a GPU. Copies run on a stream of its own: waiting for the whole GPU would
 * wait for other ranks' kernels that wait for this rank.
 */
final class CudaRankMemory implements RankMemory {
    private static final long ALIGNMENT = 128;

    private final CudaContext context;
    private final CudaStream stream;
    private final DevicePool pool;
    private final List<CudaMemory> plain = new ArrayList<>();

    CudaRankMemory(Device device) {
        // Not one of its own: tensors out of the pool may go later than this.
        context = CudaContext.shared(CudaDevice.of(device.index()));
        stream = CudaStream.create(context);
        pool = new DevicePool(stream);
    }

    @Override
    public Tensor upload(Tensor host) {
        long bytes = host.numElements() * host.dtype().sizeBytes();
        DevicePool.Block block = pool.allocate(bytes);
        if (bytes > 0) {
            stream.copy(block.address(), host.address(), bytes);
            stream.synchronize();
        }
        return block.tensor(host.dtype(), host.shape());
    }

    @Override
    public Tensor uploadPlain(Tensor host) {
        long bytes = Math.max(1, host.numElements() * host.dtype().sizeBytes());
        CudaMemory memory = CudaMemory.allocate(context, bytes);
        plain.add(memory);
        stream.copy(memory.address(), host.address(), bytes);
        stream.synchronize();
        return Tensor.onDevice(
                context.device(),
                memory.address(),
                bytes,
                host.dtype(),
                host.shape(),
                host.strides());
    }

    /** Copies the memory that the elements span and keeps the strides. */
    @Override
    public Tensor download(Tensor tensor, Arena arena) {
        if (tensor.device().isHost()) {
            return tensor;
        }
        long bytes = tensor.extentBytes();
        MemorySegment copy = arena.allocate(Math.max(bytes, 1), ALIGNMENT);
        if (bytes > 0) {
            stream.copy(copy.address(), tensor.address(), bytes);
            stream.synchronize();
        }
        return Tensor.strided(copy, tensor.dtype(), tensor.shape(), tensor.strides());
    }

    @Override
    public void copyRows(Tensor from, Tensor to, long rows) {
        Tensor source = from.slice(0, 0, rows);
        Tensor target = to.slice(0, 0, rows);
        long elementBytes = from.dtype().sizeBytes();
        if (source.isContiguous() && target.isContiguous()) {
            stream.copy(target.address(), source.address(), source.numElements() * elementBytes);
        } else {
            for (long row = 0; row < rows; row++) {
                stream.copy(
                        target.address() + target.offsetBytes(row, 0),
                        source.address() + source.offsetBytes(row, 0),
                        source.size(1) * elementBytes);
            }
        }
        stream.synchronize();
    }

    @Override
    public long usedDeviceBytes() {
        return context.cudaDevice().memoryBytes() - context.freeMemoryBytes();
    }

    @Override
    public void close() {
        stream.synchronize();
        pool.close();
        plain.forEach(CudaMemory::close);
        stream.close();
    }
}
