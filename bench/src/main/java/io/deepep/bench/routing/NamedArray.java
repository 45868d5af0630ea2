package io.deepep.bench.routing;

import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/** An array from a file, row-major. */
final class NamedArray {
    /** Element types that routings are stored in. */
    enum Type {
        I64(8),
        I32(4),
        F32(4);

        private final int bytes;

        Type(int bytes) {
            this.bytes = bytes;
        }

        boolean isInteger() {
            return this != F32;
        }
    }

    private final String file;
    private final String name;
    private final Type type;
    private final long[] shape;
    private final ByteBuffer data;

    /**
     * An array of exactly the bytes of {@code data}.
     *
     * @param file that it is from, for complaints
     * @param name its name in the file; empty if it is the whole file
     * @param data the elements, little-endian
     */
    NamedArray(String file, String name, Type type, long[] shape, ByteBuffer data) {
        this.file = file;
        this.name = name;
        this.type = type;
        this.shape = shape.clone();
        this.data = data.slice().order(ByteOrder.LITTLE_ENDIAN);
        BigInteger needed = BigInteger.valueOf(type.bytes);
        for (long size : shape) {
            if (size < 0) {
                throw new RoutingFileException(this + " has a negative size");
            }
            needed = needed.multiply(BigInteger.valueOf(size));
        }
        if (!needed.equals(BigInteger.valueOf(data.remaining()))) {
            throw new RoutingFileException(
                    this + " needs " + needed + " bytes of data, the file has " + data.remaining());
        }
    }

    String name() {
        return name;
    }

    Type type() {
        return type;
    }

    long[] shape() {
        return shape.clone();
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

    int numElements() {
        return data.limit() / type.bytes;
    }

    boolean hasShapeOf(NamedArray other) {
        return Arrays.equals(shape, other.shape);
    }

    @Override
    public String toString() {
        return (name.isEmpty() ? file : file + ": " + name) + ": " + type + Arrays.toString(shape);
    }
}
