package io.deepep.bench.chaos;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;

/**
 * What the command and the processes of its ranks say to each other: records, a line of JSON each.
 */
final class Lines {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Lines() {}

    static String write(Record said) {
        try {
            return JSON.writeValueAsString(said);
        } catch (JsonProcessingException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    static <T extends Record> T read(String line, Class<T> type) {
        try {
            return JSON.readValue(line, type);
        } catch (JsonProcessingException malformed) {
            throw new IllegalStateException("a rank's process said " + line, malformed);
        }
    }
}
