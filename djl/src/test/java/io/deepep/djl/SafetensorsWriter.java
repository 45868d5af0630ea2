package io.deepep.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.BlockList;
import ai.djl.nn.Parameter;
import com.google.gson.Gson;
import com.google.gson.JsonObject;
import io.deepep.Bf16;
import io.deepep.Fp8E4m3;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.TreeMap;

/** Writes weights as other tools do. */
public final class SafetensorsWriter {
    private static final Gson GSON = new Gson();

    private SafetensorsWriter() {}

    /** One tensor: its type in the file and its elements. */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    public record Values(String dtype, Shape shape, float[] elements) {
        ByteBuffer bytes() {
            int size = dtype.equals("F32") ? 4 : dtype.contains("8") ? 1 : 2;
            ByteBuffer bytes =
                    ByteBuffer.allocate(size * elements.length).order(ByteOrder.LITTLE_ENDIAN);
            for (float element : elements) {
                switch (dtype) {
                    case "F32" -> bytes.putFloat(element);
                    case "BF16" -> bytes.putShort(Bf16.fromFloat(element));
                    case "F16" -> bytes.putShort(Float.floatToFloat16(element));
                    case "F8_E4M3" -> bytes.put(Fp8E4m3.fromFloat(element));
                    case "U8" -> bytes.put((byte) (int) element);
                    default -> throw new AssertionError(dtype);
                }
            }
            return bytes.flip();
        }
    }

    /**
     * What a header says of a tensor.
     *
     * @param offset of its bytes, behind the header
     */
    public static JsonObject entry(String dtype, long[] shape, long offset, long numBytes) {
        JsonObject entry = new JsonObject();
        entry.addProperty("dtype", dtype);
        entry.add("shape", GSON.toJsonTree(shape));
        entry.add("data_offsets", GSON.toJsonTree(new long[] {offset, offset + numBytes}));
        return entry;
    }

    /** How a file begins, up to the tensors' bytes. */
    public static ByteBuffer header(JsonObject entries) {
        String json = entries.toString();
        return header(json + " ".repeat(Math.floorMod(-json.length(), Long.BYTES)));
    }

    static ByteBuffer header(String json) {
        byte[] bytes = json.getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocate(Long.BYTES + bytes.length)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putLong(bytes.length)
                .put(bytes)
                .flip();
    }

    /** Writes one file. */
    public static void write(Path file, Map<String, Values> tensors) throws IOException {
        JsonObject entries = new JsonObject();
        JsonObject metadata = new JsonObject();
        metadata.addProperty("format", "pt");
        entries.add("__metadata__", metadata);
        long offset = 0;
        for (Map.Entry<String, Values> tensor : tensors.entrySet()) {
            Values values = tensor.getValue();
            long numBytes = values.bytes().remaining();
            long[] shape = values.shape().getShape();
            entries.add(tensor.getKey(), entry(values.dtype(), shape, offset, numBytes));
            offset += numBytes;
        }
        try (FileChannel channel =
                FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
            channel.write(header(entries));
            for (Values values : tensors.values()) {
                channel.write(values.bytes());
            }
        }
    }

    /** Writes an index over files. */
    public static void writeIndex(Path folder, Map<String, String> fileOf) throws IOException {
        JsonObject map = new JsonObject();
        fileOf.forEach(map::addProperty);
        JsonObject index = new JsonObject();
        index.add("weight_map", map);
        Files.writeString(folder.resolve("model.safetensors.index.json"), index.toString());
    }

    /** All parameters of a block, by the names that {@link SafetensorsParameters} gives them. */
    public static Map<String, Values> valuesOf(Block block, String prefix, String dtype) {
        Map<String, Values> tensors = new TreeMap<>();
        for (Parameter parameter : block.getDirectParameters().values()) {
            NDArray array = parameter.getArray();
            tensors.put(
                    prefix + parameter.getName(),
                    new Values(dtype, array.getShape(), array.toFloatArray()));
        }
        BlockList children = block.getChildren();
        for (int i = 0; i < children.size(); i++) {
            String name = children.keyAt(i).replaceFirst("^" + (i < 9 ? "0" : "") + (i + 1), "");
            tensors.putAll(valuesOf(children.valueAt(i), prefix + name + ".", dtype));
        }
        return tensors;
    }
}
