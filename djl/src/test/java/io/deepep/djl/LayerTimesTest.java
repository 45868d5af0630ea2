package io.deepep.djl;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The program that times layers writes what {@code deepep report} reads. */
class LayerTimesTest {
    @Test
    void recordsBothModesForEachNumberOfTokens(@TempDir Path folder) throws Exception {
        Path file = folder.resolve("layer.json");
        LayerTimes.run(
                new LayerTimes.Repeats(2, 3), "128", "64", "8", "2", file.toString(), "1", "5");
        JsonArray records = JsonParser.parseString(Files.readString(file)).getAsJsonArray();
        assertThat(records)
                .extracting(each -> text(each, "mode") + " " + text(each, "tokens"))
                .containsExactly("low-latency 1", "low-latency 5", "normal 1", "normal 5");
        for (JsonElement each : records) {
            JsonObject record = each.getAsJsonObject();
            for (String part : new String[] {"gate", "dispatch", "experts", "combine", "layer"}) {
                assertThat(record.get(part + "Micros").getAsDouble()).as(part).isPositive();
            }
        }
    }

    private static String text(JsonElement record, String field) {
        return record.getAsJsonObject().get(field).getAsString();
    }
}
