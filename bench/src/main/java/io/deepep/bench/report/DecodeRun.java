package io.deepep.bench.report;

import com.fasterxml.jackson.databind.JsonNode;
import io.deepep.bench.text.TextTable;
import java.nio.file.Path;
import java.util.List;

/**
 * The decoding loop, as {@code deepep bench decode --json} recorded it.
 *
 * @param name as {@link BenchRun#name} has it
 * @param records one for each number of tokens and of multiprocessors
 */
record DecodeRun(String name, List<JsonNode> records) {
    /** What each of its records has. */
    static final String MARK = "launchedMicros";

    static DecodeRun read(Path file, List<Path> all) {
        return new DecodeRun(
                BenchRun.name(file, all),
                JsonRecords.read(file, MARK, "deepep bench decode --json"));
    }

    private static TextTable<JsonNode> table() {
        return new TextTable<JsonNode>()
                .right("tokens", each -> each.path("tokens").asText())
                .right("SMs", each -> each.path("sms").asText())
                .right("GPU alone", each -> JsonRecords.number(each.path("gpuMicros"), 1))
                .right("launched by Java", each -> JsonRecords.number(each.path(MARK), 1))
                .right("as a graph", each -> JsonRecords.number(each.path("graphMicros"), 1))
                .right("host per call", each -> JsonRecords.number(each.path("callMicros"), 2))
                .right(
                        "a bare launch",
                        each -> JsonRecords.number(each.path("bareLaunchMicros"), 2))
                .right(
                        "garbage per call",
                        each -> JsonRecords.number(each.path("bytesPerCall"), 1));
    }

    String markdown() {
        return table().markdown(records);
    }

    void addTo(ReportPage page) {
        JsonNode any = records.getFirst();
        String where =
                any.has("gpu")
                        ? any.path("gpus").asText() + " x " + any.path("gpu").asText()
                        : "Host backend";
        page.section(
                        name + ": decoding loop",
                        where
                                + ", %s ranks, %s layers of a dispatch and a combine each, hidden %s, top-%s of %s experts. Commit %s, %s."
                                        .formatted(
                                                JsonRecords.texts(
                                                        any, "ranks", "layers", "hidden", "topk",
                                                        "experts", "commit", "time")))
                .table("Microseconds per layer, medians of the slowest rank", records, table());
    }
}
