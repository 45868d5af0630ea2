package io.deepep.bench.routing;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.stream.Collectors;

/** Writes routing files for tests, byte by byte as the formats say. */
public final class RoutingFiles {
    private RoutingFiles() {}

    /** A version 1 {@code .npy} file of 64-bit integers. */
    public static Path npyI64(Path file, long[] shape, long... values) throws IOException {
        return Files.write(file, npy(1, dictionary("<i8", "False", tuple(shape)), i64(values)));
    }

    /** The header of a {@code .npy} file. */
    static String dictionary(String descr, String order, String shape) {
        return "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }".formatted(descr, order, shape);
    }

    /** A {@code .npy} file. */
    static byte[] npy(int version, String dictionary, byte[] data) {
        byte[] header = (dictionary + "\n").getBytes(StandardCharsets.UTF_8);
        ByteBuffer prefix =
                ByteBuffer.allocate(version == 1 ? 10 : 12).order(ByteOrder.LITTLE_ENDIAN);
        prefix.put((byte) 0x93)
                .put("NUMPY".getBytes(StandardCharsets.US_ASCII))
                .put((byte) version)
                .put((byte) 0);
        if (version == 1) {
            prefix.putShort((short) header.length);
        } else {
            prefix.putInt(header.length);
        }
        return concat(prefix.array(), header, data);
    }

    /** A {@code .safetensors} file. */
    static byte[] safetensors(String json, byte[]... data) {
        byte[] header = json.getBytes(StandardCharsets.UTF_8);
        byte[] length =
                ByteBuffer.allocate(8)
                        .order(ByteOrder.LITTLE_ENDIAN)
                        .putLong(header.length)
                        .array();
        return concat(length, header, concat(data));
    }

    static String tuple(long... shape) {
        return Arrays.stream(shape)
                .mapToObj(size -> size + ",")
                .collect(Collectors.joining(" ", "(", ")"));
    }

    static byte[] i64(long... values) {
        ByteBuffer bytes = ByteBuffer.allocate(8 * values.length).order(ByteOrder.LITTLE_ENDIAN);
        Arrays.stream(values).forEach(bytes::putLong);
        return bytes.array();
    }

    static byte[] i32(int... values) {
        ByteBuffer bytes = ByteBuffer.allocate(4 * values.length).order(ByteOrder.LITTLE_ENDIAN);
        Arrays.stream(values).forEach(bytes::putInt);
        return bytes.array();
    }

    static byte[] f32(float... values) {
        ByteBuffer bytes = ByteBuffer.allocate(4 * values.length).order(ByteOrder.LITTLE_ENDIAN);
        for (float value : values) {
            bytes.putFloat(value);
        }
        return bytes.array();
    }

    private static byte[] concat(byte[]... parts) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            all.writeBytes(part);
        }
        return all.toByteArray();
    }
}
