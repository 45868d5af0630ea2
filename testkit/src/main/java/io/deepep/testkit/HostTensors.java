package io.deepep.testkit;

import io.deepep.DType;
import io.deepep.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Random;

/**
 * Host tensors made from arrays, copied, poisoned and compared. Their memory is freed by the
 * garbage collector.
 */
public final class HostTensors {
    /**
     * Fills every byte of poisoned memory: a NaN as BF16, F32 and FP8, far out of range as an
     * index.
     */
    public static final byte POISON = (byte) 0xff;

    private HostTensors() {}

    /** A zeroed contiguous tensor. */
    public static Tensor allocate(DType dtype, long... shape) {
        return Tensor.allocate(Arena.ofAuto(), dtype, shape);
    }

    /** I64 [rows, columns]. */
    public static Tensor i64(long[][] values, int columns) {
        Tensor tensor = allocate(DType.I64, values.length, columns);
        for (int i = 0; i < values.length; i++) {
            for (int j = 0; j < columns; j++) {
                tensor.setLong(values[i][j], i, j);
            }
        }
        return tensor;
    }

    /** F32 [rows, columns]. */
    public static Tensor f32(float[][] values, int columns) {
        Tensor tensor = allocate(DType.F32, values.length, columns);
        for (int i = 0; i < values.length; i++) {
            tensor.setFloats(values[i], i);
        }
        return tensor;
    }

    /** A contiguous copy. */
    public static Tensor copyOf(Tensor tensor) {
        Tensor copy = allocate(tensor.dtype(), tensor.shape());
        copy(tensor, copy);
        return copy;
    }

    /** A copy whose rows, along the last dimension, are {@code gap} poisoned elements apart. */
    public static Tensor withRowGap(Tensor tensor, long gap) {
        long[] padded = tensor.shape();
        padded[padded.length - 1] += gap;
        return strided(
                tensor,
                Tensor.contiguousStrides(padded),
                Arrays.stream(padded).reduce(1, (a, b) -> a * Math.max(b, 1)));
    }

    /** A copy of a matrix in column-major order. */
    public static Tensor columnMajor(Tensor matrix) {
        long[] strides = {1, Math.max(matrix.size(0), 1)};
        return strided(matrix, strides, matrix.numElements());
    }

    /** A copy with every second element of a row unused, so that rows are not contiguous. */
    public static Tensor withColumnGap(Tensor tensor) {
        long[] strides = Tensor.contiguousStrides(tensor.shape());
        Arrays.setAll(strides, d -> 2 * strides[d]);
        return strided(tensor, strides, 2 * tensor.numElements());
    }

    private static Tensor strided(Tensor tensor, long[] strides, long numElements) {
        long bytes = Math.max(numElements, 1) * tensor.dtype().sizeBytes();
        MemorySegment memory = Arena.ofAuto().allocate(bytes, 128).fill(POISON);
        Tensor copy = Tensor.strided(memory, tensor.dtype(), tensor.shape(), strides);
        copy(tensor, copy);
        return copy;
    }

    /** A tensor's memory, also that of a device, in another shape. */
    public static Tensor view(Tensor memory, long[] shape, long[] strides) {
        return memory.device().isHost()
                ? Tensor.strided(memory.segment(), memory.dtype(), shape, strides)
                : Tensor.onDevice(
                        memory.device(),
                        memory.address(),
                        memory.capacityBytes(),
                        memory.dtype(),
                        shape,
                        strides,
                        memory.owner());
    }

    /** Copies the elements, bit for bit; shapes and dtypes are equal, strides may differ. */
    public static void copy(Tensor from, Tensor to) {
        if (from.dtype() != to.dtype() || !Arrays.equals(from.shape(), to.shape())) {
            throw new IllegalArgumentException("cannot copy " + from + " to " + to);
        }
        if (from.numElements() == 0) {
            return;
        }
        if (from.isContiguous() && to.isContiguous()) {
            long bytes = from.numElements() * from.dtype().sizeBytes();
            MemorySegment.copy(from.segment(), 0, to.segment(), 0, bytes);
        } else if (from.rank() > 1) {
            for (long i = 0; i < from.size(0); i++) {
                copy(from.select(0, i), to.select(0, i));
            }
        } else {
            for (long i = 0; i < from.size(0); i++) {
                to.setLong(from.getLong(i), i);
            }
        }
    }

    /** Fills the elements of a contiguous tensor with {@link #POISON} and returns it. */
    public static Tensor poison(Tensor tensor) {
        tensor.segment().asSlice(0, tensor.numElements() * tensor.dtype().sizeBytes()).fill(POISON);
        return tensor;
    }

    /** Fills the elements of a contiguous tensor with any bits. */
    public static void randomBytes(Tensor tensor, Random random) {
        byte[] bytes = new byte[(int) (tensor.numElements() * tensor.dtype().sizeBytes())];
        random.nextBytes(bytes);
        tensor.segment().copyFrom(MemorySegment.ofArray(bytes));
    }

    /**
     * The first index at which two contiguous tensors differ in their bits, or -1 if they are the
     * same.
     */
    public static long firstDifference(Tensor a, Tensor b) {
        if (a.dtype() != b.dtype() || !Arrays.equals(a.shape(), b.shape())) {
            throw new IllegalArgumentException("cannot compare " + a + " with " + b);
        }
        long bytes = a.numElements() * a.dtype().sizeBytes();
        long at = MemorySegment.mismatch(a.segment(), 0, bytes, b.segment(), 0, bytes);
        return at < 0 ? -1 : at / a.dtype().sizeBytes();
    }
}
