package io.deepep.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;

/**
 * One mapped file: the length of the header (8 bytes, little-endian), the header as JSON with
 * dtype, shape and data_offsets of each tensor, then the data.
 *
 * @param data what follows the header
 * @param dataOffset where in the file that begins
 */
record SafetensorsFile(
        Path path, Arena arena, MemorySegment data, Map<String, Entry> entries, long dataOffset)
        implements AutoCloseable {
    private static final ValueLayout.OfLong LENGTH =
            ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final long MAX_HEADER_BYTES = 100_000_000; // as the format's own library allows
    private static final long SAMPLE_BYTES = 4096;
    private static final String METADATA = "__metadata__";

    /** One tensor: bytes [begin, end) of the data. */
    record Entry(String dtype, Shape shape, long begin, long end) {}

    /** The type of elements in libtorch's numbers. */
    private record Type(int torchType, int bytes) {}

    static SafetensorsFile open(Path path) throws IOException {
        Arena arena = Arena.ofShared();
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
            MemorySegment file =
                    channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size(), arena);
            long length = file.byteSize() < Long.BYTES ? -1 : file.get(LENGTH, 0);
            if (length < 0 || length > Math.min(file.byteSize() - Long.BYTES, MAX_HEADER_BYTES)) {
                throw new IOException(
                        "%s has %s bytes and a header of %s; it is truncated, or not a .safetensors file"
                                .formatted(path, file.byteSize(), length));
            }
            byte[] header = file.asSlice(Long.BYTES, length).toArray(ValueLayout.JAVA_BYTE);
            MemorySegment data = file.asSlice(Long.BYTES + length);
            return new SafetensorsFile(
                    path, arena, data, parse(path, header, data.byteSize()), Long.BYTES + length);
        } catch (IOException | RuntimeException failure) {
            arena.close();
            throw failure;
        }
    }

    private static Map<String, Entry> parse(Path path, byte[] header, long dataBytes)
            throws IOException {
        Map<String, Entry> entries = new LinkedHashMap<>();
        try {
            JsonObject root =
                    JsonParser.parseString(new String(header, StandardCharsets.UTF_8))
                            .getAsJsonObject();
            for (Map.Entry<String, JsonElement> tensor : root.entrySet()) {
                if (!tensor.getKey().equals(METADATA)) {
                    Entry entry = entry(tensor.getValue().getAsJsonObject());
                    if (entry.begin < 0 || entry.end < entry.begin || entry.end > dataBytes) {
                        throw new IOException(
                                "%s: %s has data_offsets [%s, %s), not within the %s bytes of data"
                                        .formatted(
                                                path,
                                                tensor.getKey(),
                                                entry.begin,
                                                entry.end,
                                                dataBytes));
                    }
                    entries.put(tensor.getKey(), entry);
                }
            }
        } catch (RuntimeException wrong) { // Gson has one of its own for every kind of mistake
            throw new IOException(
                    path + ": the header is not that of a .safetensors file: " + wrong, wrong);
        }
        return entries;
    }

    private static Entry entry(JsonObject json) {
        List<JsonElement> sizes = json.getAsJsonArray("shape").asList();
        long[] shape = sizes.stream().mapToLong(JsonElement::getAsLong).toArray();
        JsonArray offsets = json.getAsJsonArray("data_offsets");
        return new Entry(
                json.get("dtype").getAsString(),
                new Shape(shape),
                offsets.get(0).getAsLong(),
                offsets.get(1).getAsLong());
    }

    /** Where in the file mapped bytes lie, or -1 if they are none of it. */
    long offsetOf(MemorySegment bytes) {
        long begin = bytes.address() - data.address();
        return begin < 0 || begin + bytes.byteSize() > data.byteSize() ? -1 : dataOffset + begin;
    }

    private Entry entry(String name) {
        Entry entry = entries.get(name);
        if (entry == null) {
            throw new IllegalArgumentException(
                    path + " has no tensor " + name + ", although the index says so");
        }
        return entry;
    }

    /** The first bytes of a tensor. */
    ByteBuffer beginningOf(String name) {
        Entry entry = entry(name);
        return data.asSlice(entry.begin, Math.min(SAMPLE_BYTES, entry.end - entry.begin))
                .asByteBuffer();
    }

    /** An array over the file's memory. */
    NDArray view(NDManager manager, String name) {
        Entry entry = entry(name);
        Type type =
                switch (entry.dtype) {
                    case "BF16" -> new Type(LibTorch.BFLOAT16, 2);
                    case "F16" -> new Type(LibTorch.FLOAT16, 2);
                    case "U8" -> new Type(LibTorch.UINT8, 1); // two FP4 values, or a power of two
                    case "F8_E4M3" -> new Type(LibTorch.FLOAT8_E4M3, 1);
                    case "F32" -> new Type(LibTorch.FLOAT32, 4);
                    default ->
                            throw new IllegalArgumentException(
                                    ("%s: %s has dtype %s; weights must be BF16, F16, F32, F8_E4M3 or U8:"
                                                    + " convert it first")
                                            .formatted(path, name, entry.dtype));
                };
        // Of a broken header, sizes may be negative, and the product more than a long holds.
        double numBytes =
                LongStream.of(entry.shape.getShape())
                        .mapToDouble(size -> size < 0 ? Double.NaN : size)
                        .reduce(type.bytes, (product, size) -> product * size);
        if (entry.end - entry.begin != numBytes) {
            throw new IllegalArgumentException(
                    "%s: %s has %s bytes for shape %s of %s"
                            .formatted(
                                    path, name, entry.end - entry.begin, entry.shape, entry.dtype));
        }
        MemorySegment memory = data.asSlice(entry.begin, entry.end - entry.begin);
        return TorchTensors.view(manager, memory, type.torchType, entry.shape.getShape());
    }

    @Override
    public void close() {
        arena.close();
    }
}
