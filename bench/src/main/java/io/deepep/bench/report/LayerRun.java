package io.deepep.bench.report;

import com.fasterxml.jackson.databind.JsonNode;
import io.deepep.bench.chart.Charts;
import io.deepep.bench.report.ReportPage.Grid;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A layer of a model, as the times of it in DJL and in PyTorch were recorded.
 *
 * @param name the first file's, as {@link BenchRun#name} has it
 * @param records of all files, one for each implementation, mode and number of tokens
 */
record LayerRun(String name, List<JsonNode> records) {
    private static final String MARK = "layerMicros";
    private static final List<String> PARTS =
            List.of("gateMicros", "dispatchMicros", "expertsMicros", "combineMicros", MARK);
    private static final List<String> SHAPE =
            List.of("hidden", "intermediate", "experts", "topk", "ranks");

    /** Whether a file holds such a recording. */
    static boolean isIn(Path file) {
        return JsonRecords.have(MARK, file);
    }

    /** Those of some of {@code all} files, where layers of one shape are one run. */
    static List<LayerRun> read(List<Path> files, List<Path> all) {
        Map<List<String>, LayerRun> runs = new LinkedHashMap<>();
        for (Path file : files) {
            for (JsonNode each : JsonRecords.read(file, MARK, "LayerTimes or layer_times.py")) {
                List<String> shape = SHAPE.stream().map(field -> text(each, field)).toList();
                runs.computeIfAbsent(
                                shape,
                                key -> new LayerRun(BenchRun.name(file, all), new ArrayList<>()))
                        .records
                        .add(each);
            }
        }
        return List.copyOf(runs.values());
    }

    private static String text(JsonNode record, String field) {
        return record.path(field).asText();
    }

    private static String who(JsonNode each) {
        return text(each, "layer") + ", " + text(each, "mode");
    }

    void addTo(ReportPage page) {
        JsonNode any = records.getFirst();
        Grid grid = new Grid("Microseconds, means of the slowest rank").text("layer");
        grid.number("tokens").number("gate").number("dispatch").number("experts");
        grid.number("combine").number("whole");
        Map<String, Charts.Line> lines = new LinkedHashMap<>();
        for (JsonNode each : records) {
            List<Object> row = new ArrayList<>(List.of(who(each), text(each, "tokens")));
            PARTS.forEach(part -> row.add(JsonRecords.number(each.path(part), 0)));
            grid.row(false, row.toArray());
            Charts.Line line =
                    lines.computeIfAbsent(
                            who(each),
                            key -> new Charts.Line(new ArrayList<>(), new ArrayList<>()));
            line.xs().add(each.path("tokens").asDouble());
            line.ys().add(each.path(MARK).asDouble());
        }
        ReportPage.Section section =
                page.section(
                        name + ": a layer of a model",
                        ("%s ranks (%s), hidden %s, experts of %s channels, top-%s of %s. Ranks wait for their GPU after each"
                                        + " part, but not within the whole.")
                                .formatted(
                                        JsonRecords.texts(
                                                any,
                                                "ranks",
                                                "device",
                                                "hidden",
                                                "intermediate",
                                                "topk",
                                                "experts")));
        section.tables().add(grid);
        section.plot(
                name + "-layer.svg",
                "Time of the whole layer by tokens of each rank, in microseconds",
                Charts.lines("Time of a layer", "tokens per rank", "µs", lines));
    }
}
