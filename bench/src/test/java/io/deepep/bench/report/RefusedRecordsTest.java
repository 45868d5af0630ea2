package io.deepep.bench.report;

import static io.deepep.bench.CommandLines.run;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import jdk.jfr.Event;
import jdk.jfr.Name;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Files that {@code report} cannot read: it names them, and leaves nothing behind. */
@Tag("checkout")
@Isolated("it makes flight recordings")
final class RefusedRecordsTest {
    private static final String RECORD =
            """
            [{"p50Micros": %s, "ranks": 2, "nodes": 1, "backend": "host", "op": "dispatch",
              "dtype": "bf16", "commit": "c", "time": "2026-01-01"%s}]""";

    @TempDir private Path folder;

    private Path file(String name, String text) throws IOException {
        return Files.writeString(folder.resolve(name), text);
    }

    private void requireRefused(String complaint, Path file) {
        run("report", file, "--out", folder.resolve("out")).requireRefused(complaint);
        assertThat(folder.resolve("out")).doesNotExist();
    }

    @Test
    void filesOfAnotherKind() throws IOException {
        requireRefused("there is no file", folder.resolve("absent.json"));
        requireRefused("there is no file", Path.of("/"));
        requireRefused("notes.json is not JSON", file("notes.json", "not JSON"));
        requireRefused("has no records", file("hollow.json", "[null]"));
        requireRefused("has no records", file("single.json", "{\"p50Micros\": 1}"));
        requireRefused("has no records", file("empty.json", "[]"));
        requireRefused("has no records", file("nothing.json", ""));
        String record = RECORD.formatted(1, "");
        requireRefused("has more than one JSON value", file("joined.json", record + record));
        requireRefused("has no records", file("plan.json", "[{\"mode\": \"normal\"}]"));
        requireRefused(
                "is not what deepep bench --json writes",
                file("wrong.json", "[{\"p50Micros\": \"x\"}]"));
        requireRefused("x.jfr as a flight recording", file("x.jfr", "nothing"));
    }

    /** A report would end in a stack trace if it took them. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "[{\"p50Micros\": 1}]",
                "[{\"p50Micros\": 1, \"ranks\": 2, \"nodes\": 1, \"backend\": \"host\", \"op\": \"dispatch\"}]"
            })
    void recordsWithoutSomeFields(String records) throws IOException {
        requireRefused(
                "r.json is not what deepep bench --json writes: record 1", file("r.json", records));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                ", \"routing\": {}",
                ", \"routing\": {\"rows\": [[1], [2]], \"expertTokens\": [null]}"
            })
    void recordsWithPartsOfARouting(String routing) throws IOException {
        requireRefused(
                "r.json is not what deepep bench --json writes: record 1",
                file("r.json", RECORD.formatted(1, routing)));
    }

    @ParameterizedTest
    @ValueSource(strings = {"0", "-1", "1e400", "1e16", "null"})
    void timesThatNoRunHas(String micros) throws IOException {
        requireRefused(
                "record 1 lacks a field, or has a number that no run has",
                file("r.json", RECORD.formatted(micros, "")));
    }

    /** Their plot would have endless axes. */
    @ParameterizedTest
    @CsvSource({"0, 5", "1e308, 5", "8, 0", "8, 1e400", "8, -1", "\"x\", 5", "8, \"x\""})
    void layersWithoutTokensOrTime(String tokens, String micros) throws IOException {
        Path layers =
                file(
                        "layers.json",
                        "[{\"tokens\": %s, \"layerMicros\": %s}]".formatted(tokens, micros));
        requireRefused("layers.json: a record has tokens", layers);
    }

    @Test
    void thePageNeedsAFolder() throws IOException {
        Path page = file("page", "");
        run("report", file("r.json", RECORD.formatted(1, "")), "--out", page)
                .requireRefused("--out=", "is a file; name a folder");
    }

    @Name("io.deepep.Operation")
    private static final class OtherOperation extends Event {}

    /** As another version of the library may record a call. */
    @Test
    void recordingsWithOtherFields() throws IOException {
        requireRefused("or one of another version", recording(new OtherOperation()));
        requireRefused("or one of another version", recording(new FlightAnswersTest.PartOfCall()));
    }

    /** Numbers of this size would take all memory. */
    @ParameterizedTest
    @ValueSource(ints = {-1, Integer.MAX_VALUE})
    void damagedRecordings(int expert) throws IOException {
        requireRefused(
                "r.jfr is a damaged recording", recording(FlightAnswersTest.load(0, expert, 1)));
    }

    private Path recording(Event event) throws IOException {
        return ReportFixture.recording(folder.resolve("r.jfr"), event);
    }
}
