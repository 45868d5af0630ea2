package io.deepep.jcuda;

import io.deepep.DType;
import io.deepep.Device;
import io.deepep.Tensor;
import java.util.Objects;
import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;

/**
 * Creates tensors over memory that JCuda allocated, and JCuda pointers to tensors.
 *
 * <p>Both are views. JCuda frees memory only by {@code cuMemFree} and {@code cudaFree}, never by
 * garbage collection: whoever allocated the memory must keep it until the last work on its tensors
 * has finished.
 */
public final class JCudaTensors {
    private JCudaTensors() {}

    /**
     * Creates a contiguous tensor over device memory. The driver tells which GPU the memory is on
     * and where the allocation ends.
     *
     * @param pointer a pointer from {@code cuMemAlloc}, {@code cudaMalloc} or their pools, with any
     *     offset
     * @param shape any shape that does not exceed the allocation
     * @throws IllegalArgumentException if {@code pointer} is not in device memory, or the
     *     allocation is too small
     * @throws io.deepep.error.DeepEpUnavailableException if CUDA cannot be used
     */
    public static Tensor tensorOf(Pointer pointer, DType dtype, long... shape) {
        return Tensor.cuda(NativePointers.address(pointer), pointer, dtype, shape);
    }

    /**
     * Creates a contiguous tensor over device memory that the driver is not asked about.
     *
     * @param device the GPU that the memory is on
     * @param numBytes bytes from {@code pointer} that the tensor may use
     */
    public static Tensor tensorOf(
            Device device, Pointer pointer, long numBytes, DType dtype, long... shape) {
        return Tensor.onDevice(
                device,
                NativePointers.address(pointer),
                numBytes,
                dtype,
                shape,
                Tensor.contiguousStrides(shape),
                pointer);
    }

    /**
     * Returns a pointer to a tensor's first element, for copies and launches of JCuda. The pointer
     * does not keep the memory alive: keep the tensor reachable until they have finished.
     *
     * @throws IllegalArgumentException if the tensor is on the host
     */
    public static CUdeviceptr pointerTo(Tensor tensor) {
        if (Objects.requireNonNull(tensor, "tensor").device().isHost()) {
            throw new IllegalArgumentException(
                    "tensor %s is on the host; for copies use Pointer.to(tensor.segment().asByteBuffer())"
                            .formatted(tensor));
        }
        return new CUdeviceptr().withByteOffset(tensor.address());
    }
}
