package io.deepep.bench.text;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;

/** What processes say to each other: records, a line of JSON each. */
public final class Lines {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Lines() {}

    /** The line that says it. */
    public static String write(Record said) {
        try {
            return JSON.writeValueAsString(said);
        } catch (JsonProcessingException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    /** What a line said. */
    public static <T extends Record> T read(String line, Class<T> type) {
        try {
            return JSON.readValue(line, type);
        } catch (JsonProcessingException malformed) {
            throw new IllegalStateException("a rank's process said " + line, malformed);
        }
    }
}
