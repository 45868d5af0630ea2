package io.deepep.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.BlockList;
import ai.djl.nn.Parameter;
import com.google.gson.JsonArray;
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

    /** Writes one file. */
    public static void write(Path file, Map<String, Values> tensors) throws IOException {
        JsonObject header = new JsonObject();
        JsonObject metadata = new JsonObject();
        metadata.addProperty("format", "pt");
        header.add("__metadata__", metadata);
        long offset = 0;
        for (Map.Entry<String, Values> tensor : tensors.entrySet()) {
            ByteBuffer bytes = tensor.getValue().bytes();
            JsonObject entry = new JsonObject();
            entry.addProperty("dtype", tensor.getValue().dtype());
            JsonArray shape = new JsonArray();
            for (long size : tensor.getValue().shape().getShape()) {
                shape.add(size);
            }
            entry.add("shape", shape);
            JsonArray offsets = new JsonArray();
            offsets.add(offset);
            offset += bytes.remaining();
            offsets.add(offset);
            entry.add("data_offsets", offsets);
            header.add(tensor.getKey(), entry);
        }
        byte[] json = header.toString().getBytes(StandardCharsets.UTF_8);
        try (FileChannel channel =
                FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
            ByteBuffer length = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);
            channel.write(length.putLong(json.length).flip());
            channel.write(ByteBuffer.wrap(json));
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
