package io.deepep.bench.routing;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Reads NumPy's {@code .npy}, versions 1 to 3: a magic, the length of the header (2 bytes, from
 * version 2 on 4), the header as a Python dictionary, then the data.
 */
final class NpyReader {
    private static final byte[] MAGIC = {(byte) 0x93, 'N', 'U', 'M', 'P', 'Y'};
    private static final int VERSION_AT = MAGIC.length;
    private static final int LENGTH_AT = VERSION_AT + 2;
    private static final Pattern DESCR = Pattern.compile("'descr'\\s*:\\s*'([^']*)'");
    private static final Pattern ORDER = Pattern.compile("'fortran_order'\\s*:\\s*(True|False)");
    private static final Pattern SHAPE = Pattern.compile("'shape'\\s*:\\s*\\(([^)]*)\\)");

    private NpyReader() {}

    static NamedArray read(String name, ByteBuffer file) {
        ByteBuffer bytes = file.slice().order(ByteOrder.LITTLE_ENDIAN);
        if (bytes.remaining() < LENGTH_AT + 4) {
            throw new RoutingFileException(
                    name + ": " + bytes.remaining() + " bytes are too few for a .npy file");
        }
        byte[] magic = new byte[MAGIC.length];
        bytes.get(0, magic);
        if (!Arrays.equals(magic, MAGIC)) {
            throw new RoutingFileException(
                    name + ": not a .npy file, it does not begin with \\x93NUMPY");
        }
        int version = bytes.get(VERSION_AT);
        if (version < 1 || version > 3) {
            throw new RoutingFileException(
                    name + ": .npy version " + version + " is not one of 1, 2, 3");
        }
        long length =
                version == 1
                        ? bytes.getShort(LENGTH_AT) & 0xffff
                        : bytes.getInt(LENGTH_AT) & 0xffffffffL;
        int headerAt = LENGTH_AT + (version == 1 ? 2 : 4);
        if (length > bytes.limit() - headerAt) {
            throw new RoutingFileException(
                    name + ": the header of " + length + " bytes exceeds the file");
        }
        byte[] header = new byte[(int) length];
        bytes.get(headerAt, header);
        return parse(
                name,
                new String(header, StandardCharsets.UTF_8), // all that is read of it is ASCII
                bytes.slice(headerAt + header.length, bytes.limit() - headerAt - header.length));
    }

    private static NamedArray parse(String name, String header, ByteBuffer data) {
        if (find(ORDER, header, name, "fortran_order").equals("True")) {
            throw new RoutingFileException(
                    name
                            + ": fortran_order=True is not supported; save numpy.ascontiguousarray(array)");
        }
        return new NamedArray(
                name,
                "",
                type(name, find(DESCR, header, name, "descr")),
                shape(name, find(SHAPE, header, name, "shape")),
                data);
    }

    private static NamedArray.Type type(String name, String descr) {
        return switch (descr) {
            case "<i8" -> NamedArray.Type.I64;
            case "<i4" -> NamedArray.Type.I32;
            case "<f4" -> NamedArray.Type.F32;
            default ->
                    throw new RoutingFileException(
                            "%s: dtype '%s' is not one of '<i8', '<i4', '<f4'; convert it with astype"
                                    .formatted(name, descr));
        };
    }

    private static long[] shape(String name, String tuple) {
        try {
            return Arrays.stream(tuple.split(",", -1))
                    .map(String::strip)
                    .filter(part -> !part.isEmpty())
                    .mapToLong(Long::parseLong)
                    .toArray();
        } catch (NumberFormatException wrong) {
            throw new RoutingFileException(
                    name + ": shape (" + tuple + ") is not a tuple of numbers");
        }
    }

    private static String find(Pattern pattern, String header, String name, String key) {
        Matcher matcher = pattern.matcher(header);
        if (!matcher.find()) {
            throw new RoutingFileException(name + ": the header has no valid '" + key + "'");
        }
        return matcher.group(1);
    }
}
