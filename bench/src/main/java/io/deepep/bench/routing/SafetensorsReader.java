package io.deepep.bench.routing;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Reads {@code .safetensors}: the length of the header (8 bytes), the header as JSON with dtype,
 * shape and data_offsets of each tensor, then the data. Tensors of other types than routings have
 * are left out, unless they are named as a routing's.
 */
final class SafetensorsReader {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int HEADER_AT = 8;
    private static final String METADATA = "__metadata__";

    /** Without weights, all experts of a token would count the same. */
    private static final Set<String> OF_ROUTINGS =
            Set.of(RecordedRouting.IDX, RecordedRouting.WEIGHTS);

    private SafetensorsReader() {}

    static List<NamedArray> read(String name, ByteBuffer file) {
        ByteBuffer bytes = file.slice().order(ByteOrder.LITTLE_ENDIAN);
        if (bytes.remaining() < HEADER_AT) {
            throw new RoutingFileException(
                    name + ": " + bytes.remaining() + " bytes are too few for a .safetensors file");
        }
        long length = bytes.getLong(0);
        if (length < 0 || length > bytes.limit() - HEADER_AT) {
            throw new RoutingFileException(
                    name + ": the header of " + length + " bytes exceeds the file");
        }
        byte[] header = new byte[(int) length];
        bytes.get(HEADER_AT, header);
        ByteBuffer data =
                bytes.slice(HEADER_AT + header.length, bytes.limit() - HEADER_AT - header.length);
        List<NamedArray> arrays = new ArrayList<>();
        for (Map.Entry<String, JsonNode> entry : parse(name, header).properties()) {
            if (!entry.getKey().equals(METADATA)) {
                array(name, entry.getKey(), entry.getValue(), data).ifPresent(arrays::add);
            }
        }
        return arrays;
    }

    private static JsonNode parse(String name, byte[] header) {
        try {
            JsonNode root = JSON.readTree(new String(header, StandardCharsets.UTF_8));
            if (root.isObject()) {
                return root;
            }
        } catch (JsonProcessingException wrong) {
            throw new RoutingFileException(
                    name + ": the header is not JSON: " + wrong.getOriginalMessage());
        }
        throw new RoutingFileException(name + ": the header is not a JSON object");
    }

    private static Optional<NamedArray> array(
            String file, String key, JsonNode entry, ByteBuffer data) {
        String dtype = entry.path("dtype").asText();
        Optional<NamedArray.Type> type =
                Stream.of(NamedArray.Type.values())
                        .filter(each -> each.name().equals(dtype))
                        .findFirst();
        if (type.isEmpty() && OF_ROUTINGS.contains(key)) {
            throw new RoutingFileException(
                    "%s: %s: dtype %s is not one of %s; convert it"
                            .formatted(
                                    file, key, dtype, Arrays.toString(NamedArray.Type.values())));
        }
        if (type.isEmpty()) {
            return Optional.empty();
        }
        JsonNode sizes = entry.path("shape");
        long[] shape = new long[sizes.size()];
        for (int i = 0; i < shape.length; i++) {
            shape[i] = sizes.path(i).canConvertToLong() ? sizes.path(i).asLong(-1) : -1;
        }
        long from = entry.path("data_offsets").path(0).asLong(-1);
        long to = entry.path("data_offsets").path(1).asLong(-1);
        if (from < 0 || to < from || to > data.limit()) {
            throw new RoutingFileException(
                    "%s: %s: data_offsets [%s, %s] are not within the %s bytes of data"
                            .formatted(file, key, from, to, data.limit()));
        }
        return Optional.of(
                new NamedArray(
                        file, key, type.get(), shape, data.slice((int) from, (int) (to - from))));
    }
}
