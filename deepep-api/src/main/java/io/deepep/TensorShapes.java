package io.deepep;

import java.util.Arrays;

/** Arithmetic on shapes and strides. */
final class TensorShapes {
    /** So that the size in bytes fits a long even for the widest type. */
    private static final long MAX_ELEMENTS = Long.MAX_VALUE / Long.BYTES;

    private TensorShapes() {}

    static long numElements(long[] shape) {
        long product = 1;
        boolean empty = false;
        for (long size : shape) {
            if (size < 0) {
                throw new IllegalArgumentException(
                        "shape " + Arrays.toString(shape) + " has a negative size");
            }
            empty |= size == 0;
            // Checked for an empty shape too, whose strides are computed all the same.
            long factor = Math.max(size, 1);
            if (product > MAX_ELEMENTS / factor) {
                throw new IllegalArgumentException(
                        "shape %s has more than %s elements, which no memory can hold"
                                .formatted(Arrays.toString(shape), MAX_ELEMENTS));
            }
            product *= factor;
        }
        return empty ? 0 : product;
    }

    static boolean isContiguous(long[] shape, long[] strides) {
        long next = 1;
        for (int d = shape.length - 1; d >= 0; d--) {
            if (shape[d] != 1 && strides[d] != next) {
                return false;
            }
            next *= Math.max(shape[d], 1);
        }
        return true;
    }

    /**
     * Bytes from the first element to the end of the last; 0 if there are no elements, {@link
     * Long#MAX_VALUE} if the number exceeds a long.
     */
    static long extentBytes(DType dtype, long[] shape, long[] strides) {
        long last = 0;
        for (int d = 0; d < shape.length; d++) {
            if (shape[d] == 0) {
                return 0;
            }
            long steps = shape[d] - 1;
            if (strides[d] != 0 && steps > (MAX_ELEMENTS - 1 - last) / strides[d]) {
                return Long.MAX_VALUE;
            }
            last += steps * strides[d];
        }
        return (last + 1) * dtype.sizeBytes();
    }

    static void checkBounds(long capacityBytes, DType dtype, long[] shape, long[] strides) {
        if (shape.length != strides.length) {
            throw new IllegalArgumentException(
                    "shape %s and strides %s differ in length"
                            .formatted(Arrays.toString(shape), Arrays.toString(strides)));
        }
        for (long stride : strides) {
            if (stride < 0) {
                throw new IllegalArgumentException(
                        "strides %s must not be negative; 0 repeats elements"
                                .formatted(Arrays.toString(strides)));
            }
        }
        long needed = extentBytes(dtype, shape, strides);
        if (needed > capacityBytes) {
            throw new IllegalArgumentException(
                    "%s%s with strides %s needs %s bytes, but the memory has %s"
                            .formatted(
                                    dtype,
                                    Arrays.toString(shape),
                                    Arrays.toString(strides),
                                    needed == Long.MAX_VALUE ? "more than 2^60" : needed,
                                    capacityBytes));
        }
    }

    static long[] without(long[] values, int dim) {
        long[] rest = new long[values.length - 1];
        System.arraycopy(values, 0, rest, 0, dim);
        System.arraycopy(values, dim + 1, rest, dim, rest.length - dim);
        return rest;
    }
}
