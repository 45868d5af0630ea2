package io.deepep.buffer.parity;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.deepep.DType;
import io.deepep.Tensor;
import io.deepep.testkit.HostTensors;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The content of a safetensors file: eight bytes with the length of a JSON header, the header, the
 * tensors one after the other. The same content always gives the same bytes.
 *
 * @param tensors contiguous host tensors by name
 * @param metadata strings by name
 */
record SafetensorsFile(Map<String, Tensor> tensors, Map<String, String> metadata) {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String METADATA = "__metadata__";
    private static final String DTYPE = "dtype";
    private static final String SHAPE = "shape";
    private static final String OFFSETS = "data_offsets";
    private static final int ALIGNMENT = 8;

    static SafetensorsFile read(byte[] bytes) throws IOException {
        int headerLength =
                Math.toIntExact(ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).getLong(0));
        int begin = Long.BYTES + headerLength;
        JsonNode header = JSON.readTree(bytes, Long.BYTES, headerLength);
        Map<String, Tensor> tensors = new TreeMap<>();
        Map<String, String> metadata = new TreeMap<>();
        for (Map.Entry<String, JsonNode> entry : header.properties()) {
            JsonNode value = entry.getValue();
            if (entry.getKey().equals(METADATA)) {
                value.properties().forEach(e -> metadata.put(e.getKey(), e.getValue().asText()));
            } else {
                int from = begin + value.get(OFFSETS).get(0).asInt();
                int to = begin + value.get(OFFSETS).get(1).asInt();
                tensors.put(entry.getKey(), tensor(value, Arrays.copyOfRange(bytes, from, to)));
            }
        }
        return new SafetensorsFile(tensors, metadata);
    }

    private static Tensor tensor(JsonNode entry, byte[] data) {
        JsonNode sizes = entry.get(SHAPE);
        long[] shape = new long[sizes.size()];
        Arrays.setAll(shape, i -> sizes.get(i).asLong());
        Tensor tensor = HostTensors.allocate(dtype(entry.get(DTYPE).asText()), shape);
        if (tensor.numElements() * tensor.dtype().sizeBytes() != data.length) {
            throw new IllegalArgumentException(
                    tensor + " does not have the " + data.length + " bytes of its data_offsets");
        }
        MemorySegment.copy(data, 0, tensor.segment(), ValueLayout.JAVA_BYTE, 0, data.length);
        return tensor;
    }

    byte[] toBytes() throws IOException {
        Map<String, Object> header = new LinkedHashMap<>();
        header.put(METADATA, new TreeMap<>(metadata));
        ByteArrayOutputStream data = new ByteArrayOutputStream();
        for (Map.Entry<String, Tensor> entry : new TreeMap<>(tensors).entrySet()) {
            Tensor tensor = HostTensors.copyOf(entry.getValue());
            int begin = data.size();
            long numBytes = tensor.numElements() * tensor.dtype().sizeBytes();
            data.write(tensor.segment().asSlice(0, numBytes).toArray(ValueLayout.JAVA_BYTE));
            Map<String, Object> described = new LinkedHashMap<>();
            described.put(DTYPE, name(tensor.dtype()));
            described.put(SHAPE, tensor.shape());
            described.put(OFFSETS, List.of(begin, data.size()));
            header.put(entry.getKey(), described);
        }
        String json = JSON.writeValueAsString(header);
        int padding = Math.floorMod(-json.length(), ALIGNMENT);
        byte[] head = (json + " ".repeat(padding)).getBytes(StandardCharsets.US_ASCII);
        ByteBuffer length = ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        ByteArrayOutputStream file = new ByteArrayOutputStream();
        file.write(length.putLong(head.length).array());
        file.write(head);
        data.writeTo(file);
        return file.toByteArray();
    }

    private static DType dtype(String name) {
        for (DType dtype : DType.values()) {
            if (name(dtype).equals(name)) {
                return dtype;
            }
        }
        throw new IllegalArgumentException("dtype=" + name + " is not one of DType");
    }

    private static String name(DType dtype) {
        return dtype == DType.FP8_E4M3 ? "F8_E4M3" : dtype.name();
    }
}
