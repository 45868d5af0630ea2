package io.deepep.bench.routing;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * An array from a file, row-major.
 *
 * @param name its name in the file, or the file's
 * @param type element type
 * @param shape its extents
 * @param data the elements, little-endian, from position 0
 */
record NamedArray(String name, Type type, long[] shape, ByteBuffer data) {
    /** Element types that routings are stored in. */
    enum Type {
        I64(8),
        I32(4),
        F32(4);

        final int bytes;

        Type(int bytes) {
            this.bytes = bytes;
        }

        boolean isInteger() {
            return this != F32;
        }
    }

    NamedArray {
        data = data.slice().order(ByteOrder.LITTLE_ENDIAN);
        long needed = type.bytes;
        for (long size : shape) {
            if (size < 0) {
                throw new RoutingFileException(
                        name + ": shape " + Arrays.toString(shape) + " has a negative size");
            }
            needed = Math.multiplyExact(needed, size);
        }
        if (data.remaining() != needed) {
            throw new RoutingFileException(
                    name
                            + ": "
                            + type
                            + Arrays.toString(shape)
                            + " needs "
                            + needed
                            + " bytes of data, the file has "
                            + data.remaining());
        }
    }

    /** Number of dimensions. */
    int rank() {
        return shape.length;
    }

    /** Element {@code at} of the flattened array. */
    long integerAt(int at) {
        return type == Type.I64 ? data.getLong(8 * at) : data.getInt(4 * at);
    }

    /** Element {@code at} of the flattened array. */
    float floatAt(int at) {
        return data.getFloat(4 * at);
    }

    boolean hasShapeOf(NamedArray other) {
        return Arrays.equals(shape, other.shape);
    }

    @Override
    public String toString() {
        return name + " " + type + Arrays.toString(shape);
    }

    // Arrays and buffers have no useful equality; no two of these are ever compared.
    @Override
    public boolean equals(Object other) {
        return this == other;
    }

    @Override
    public int hashCode() {
        return System.identityHashCode(this);
    }
}
