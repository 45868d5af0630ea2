package io.deepep.bench.report;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.deepep.bench.run.UsageException;
import io.deepep.bench.text.Decimals;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** Reads arrays of JSON records that have no class of their own here. */
final class JsonRecords {
    private static final ObjectMapper JSON = new ObjectMapper();

    private JsonRecords() {}

    /**
     * The records of a file.
     *
     * @param field what each of them has
     * @param writer the command that writes such files
     * @throws UsageException if it is nothing of the kind
     */
    static List<JsonNode> read(Path file, String field, String writer) {
        List<JsonNode> records = parse(file);
        if (!have(field, records)) {
            throw new UsageException(file + " is not what " + writer + " writes");
        }
        return records;
    }

    /** Whether there are records, each with {@code field}. */
    static boolean have(String field, List<JsonNode> records) {
        return !records.isEmpty() && records.stream().allMatch(each -> each.has(field));
    }

    /**
     * The records of a file, whatever they are; none if it holds something else.
     *
     * @throws UsageException if it is not JSON, or more than one value
     */
    static List<JsonNode> parse(Path file) {
        try (JsonParser parser = JSON.createParser(file.toFile())) {
            JsonNode tree = JSON.readTree(parser);
            if (parser.nextToken() != null) {
                throw new UsageException(
                        file
                                + " has more than one JSON value, as if files had been joined; give each by itself");
            }
            List<JsonNode> records = new ArrayList<>();
            if (tree != null && tree.isArray()) {
                tree.forEach(records::add);
            }
            return records;
        } catch (JsonProcessingException malformed) {
            throw new UsageException(file + " is not JSON: " + malformed.getOriginalMessage());
        } catch (IOException unreadable) {
            throw new UsageException("cannot read " + file + ": " + unreadable.getMessage());
        }
    }

    /** Whether a bench's record is of the decoding loop, which is in low-latency mode. */
    static boolean isDecode(JsonNode each) {
        return each.has("layers");
    }

    /** Whether a bench's record is of low-latency mode. */
    static boolean isLowLatency(JsonNode each) {
        return isDecode(each) || each.path("op").asText().startsWith("ll-");
    }

    /** Some fields of a record, to be put into a sentence. */
    static Object[] texts(JsonNode each, String... fields) {
        return Stream.of(fields).map(field -> each.path(field).asText()).toArray();
    }

    /** A number with so many digits after the point; nothing where there is none. */
    static String number(JsonNode value, int digits) {
        return value.isNumber() ? Decimals.of("%." + digits + "f", value.asDouble()) : "";
    }
}
