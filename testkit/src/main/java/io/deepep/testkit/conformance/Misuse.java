package io.deepep.testkit.conformance;

import io.deepep.BufferOptions;
import io.deepep.DType;
import io.deepep.Device;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import java.util.Arrays;
import java.util.function.Consumer;

/**
 * A call that must be refused before anything is started.
 *
 * @param name of the case
 * @param type what it must throw
 * @param mentions what the message must contain
 * @param call the call
 * @param <R> one rank, with what it needs for the call
 */
public record Misuse<R>(
        String name, Class<? extends Throwable> type, String mentions, Consumer<R> call) {
    /** A tensor of the same shape that lies elsewhere. Nothing may read it. */
    public static Tensor elsewhere(RankContext context, Tensor tensor) {
        if (context.backend().kind() == Device.Kind.CUDA) {
            return HostTensors.allocate(tensor.dtype(), tensor.shape());
        }
        long bytes = tensor.capacityBytes();
        return Tensor.onDevice(
                Device.cuda(0), 1 << 20, bytes, tensor.dtype(), tensor.shape(), tensor.strides());
    }

    /** A contiguous tensor in the middle of the rank's own buffer. */
    public static Tensor inBuffer(RankContext context, boolean rdma, DType dtype, long... shape) {
        long elements = Arrays.stream(shape).reduce(1, Math::multiplyExact);
        BufferOptions options = context.buffer().options();
        long numBytes = rdma ? options.numRdmaBytes() : options.numNvlBytes();
        long offset = numBytes / 2 / 128 * 128;
        Tensor flat = context.buffer().getLocalBufferTensor(dtype, elements, offset, rdma);
        return HostTensors.view(flat, shape, Tensor.contiguousStrides(shape));
    }

    /** All rows of a matrix where its first one lies. */
    public static Tensor repeated(Tensor matrix) {
        return HostTensors.view(matrix, matrix.shape(), new long[] {0, 1});
    }

    @Override
    public String toString() {
        return name;
    }
}
