package io.deepep.djl.decoder;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.deepep.djl.TorchDevices;
import io.deepep.djl.TorchGraph;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The program runs, and records every round of both modes. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class DecodeTimesTest {
    @TempDir private Path folder;

    @Test
    void recordsBothModes() throws Exception {
        Path file = folder.resolve("decode.json");
        DecodeTimes.run(
                new DecodeTimes.Shape(1, 128, 64, 16, 32),
                new DecodeTimes.Repeats(1, 2),
                file,
                1,
                3);
        JsonArray records = JsonParser.parseString(Files.readString(file)).getAsJsonArray();
        List<String> modes = new ArrayList<>();
        for (JsonElement record : records) {
            JsonObject of = record.getAsJsonObject();
            modes.add(of.get("mode").getAsString() + " " + of.get("sequencesPerRank"));
            assertThat(of.get("stepMicros").getAsDouble()).isPositive();
        }
        if (TorchGraph.isAvailable(TorchDevices.ofRank(0))) {
            assertThat(modes).contains("low-latency-graph 1", "low-latency-graph 3");
            modes.removeIf(mode -> mode.contains("graph"));
        }
        assertThat(modes).containsExactly("low-latency 1", "normal 1", "low-latency 3", "normal 3");
    }
}
