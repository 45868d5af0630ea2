package io.deepep.jcuda;

import io.deepep.DType;
import io.deepep.Device;
import io.deepep.Tensor;
import java.util.Arrays;
import java.util.Objects;
import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;

/**
 * Tensors over memory that JCuda allocated, and JCuda pointers to tensors.
 *
 * <p>Both are views. JCuda frees memory by {@code cuMemFree} and {@code cudaFree} alone, never by
 * the garbage collector: whoever allocated it keeps it until the last work on a tensor over it has
 * finished.
 */
public final class JCudaTensors {
    private JCudaTensors() {}

    /**
     * A contiguous tensor over device memory. The driver is asked for the GPU and the extent.
     *
     * @param pointer from {@code cuMemAlloc}, {@code cudaMalloc} or a pool of theirs, with any
     *     offset
     * @param shape any, up to the end of the allocation
     * @throws IllegalArgumentException if it is no device memory, or too little
     * @throws io.deepep.error.DeepEpUnavailableException if CUDA cannot be used here
     */
    public static Tensor tensorOf(Pointer pointer, DType dtype, long... shape) {
        return Tensor.cuda(NativePointers.address(pointer), pointer, dtype, shape);
    }

    /**
     * A contiguous tensor over device memory that the caller vouches for.
     *
     * @param numBytes bytes from {@code pointer} that may be used
     */
    public static Tensor tensorOf(
            Device device, Pointer pointer, long numBytes, DType dtype, long... shape) {
        return Tensor.onDevice(
                device,
                NativePointers.address(pointer),
                numBytes,
                dtype,
                shape,
                contiguousStrides(shape),
                pointer);
    }

    /**
     * The address of a tensor's first element, for JCuda's copies and launches. Keep the tensor
     * reachable until they are done: the pointer does not.
     *
     * @throws IllegalArgumentException if the tensor lies on the host
     */
    public static CUdeviceptr pointerTo(Tensor tensor) {
        if (Objects.requireNonNull(tensor, "tensor").device().isHost()) {
            throw new IllegalArgumentException(
                    ("tensor %s lies on the host; for copies from there take"
                                    + " Pointer.to(tensor.segment().asByteBuffer())")
                            .formatted(tensor));
        }
        return new CUdeviceptr().withByteOffset(tensor.address());
    }

    private static long[] contiguousStrides(long[] shape) {
        long[] strides = new long[shape.length];
        long stride = 1;
        for (int d = shape.length - 1; d >= 0; d--) {
            if (shape[d] < 0) {
                throw new IllegalArgumentException(
                        "shape " + Arrays.toString(shape) + " has a negative extent");
            }
            strides[d] = stride;
            stride *= Math.max(1, shape[d]);
        }
        return strides;
    }
}
