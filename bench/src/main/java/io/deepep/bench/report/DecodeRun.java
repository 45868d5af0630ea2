package io.deepep.bench.report;

import com.fasterxml.jackson.databind.JsonNode;
import io.deepep.bench.text.MarkdownTable;
import java.nio.file.Path;
import java.util.List;

/**
 * The decoding loop, as {@code deepep bench decode --json} recorded it.
 *
 * @param name as {@link BenchRun#name} has it
 * @param records one for each number of tokens and of multiprocessors
 */
record DecodeRun(String name, List<JsonNode> records) {
    private static final String MARK = "launchedMicros";
    private static final List<String> COLUMNS =
            List.of(
                    "tokens",
                    "SMs",
                    "GPU alone",
                    "launched by Java",
                    "as a graph",
                    "host per call",
                    "a bare launch",
                    "garbage per call");

    /** Whether a file holds such a recording. */
    static boolean isIn(Path file) {
        return JsonRecords.have(MARK, file);
    }

    static DecodeRun read(Path file, List<Path> all) {
        return new DecodeRun(
                BenchRun.name(file, all),
                JsonRecords.read(file, MARK, "deepep bench decode --json"));
    }

    private static List<String> row(JsonNode each) {
        return List.of(
                each.path("tokens").asText(),
                each.path("sms").asText(),
                JsonRecords.number(each.path("gpuMicros"), 1),
                JsonRecords.number(each.path(MARK), 1),
                JsonRecords.number(each.path("graphMicros"), 1),
                JsonRecords.number(each.path("callMicros"), 2),
                JsonRecords.number(each.path("bareLaunchMicros"), 2),
                JsonRecords.number(each.path("bytesPerCall"), 1));
    }

    String markdown() {
        MarkdownTable table = new MarkdownTable(0, COLUMNS);
        records.forEach(each -> table.row(row(each)));
        return table.toString();
    }

    void addTo(ReportPage page) {
        JsonNode any = records.getFirst();
        String where =
                any.has("gpu")
                        ? any.path("gpus").asText() + " x " + any.path("gpu").asText()
                        : "Host backend";
        ReportPage.Grid grid =
                new ReportPage.Grid("Microseconds per layer, medians of the slowest rank");
        COLUMNS.forEach(grid::number);
        records.forEach(each -> grid.row(false, row(each).toArray()));
        page.section(
                        name + ": decoding loop",
                        where
                                + ", %s ranks, %s layers of a dispatch and a combine each, hidden %s, top-%s of %s experts. Commit %s, %s."
                                        .formatted(
                                                JsonRecords.texts(
                                                        any, "ranks", "layers", "hidden", "topk",
                                                        "experts", "commit", "time")))
                .tables()
                .add(grid);
    }
}
