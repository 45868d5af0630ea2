package io.deepep.bench.report;

import com.fasterxml.jackson.databind.JsonNode;
import io.deepep.bench.chart.Charts;
import io.deepep.bench.measure.Samples;
import io.deepep.bench.run.UsageException;
import io.deepep.bench.text.TextTable;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * A layer of a model, as the times of it in DJL and in PyTorch were recorded.
 *
 * @param name the first file's, as {@link BenchRun#name} has it
 * @param records of all files, one for each implementation, mode and number of tokens
 */
record LayerRun(String name, List<JsonNode> records) {
    /** What each of its records has. */
    static final String MARK = "layerMicros";

    private static final List<String> SHAPE =
            List.of("hidden", "intermediate", "experts", "topk", "ranks", "device");

    /**
     * Those of some of {@code all} files; layers of one shape on one kind of device are one run.
     */
    static List<LayerRun> read(List<Path> files, List<Path> all) {
        Map<List<String>, LayerRun> runs = new LinkedHashMap<>();
        for (Path file : files) {
            for (JsonNode each : JsonRecords.read(file, MARK, "LayerTimes or layer_times.py")) {
                requireMeasured(file, each);
                List<String> shape = SHAPE.stream().map(field -> shape(each, field)).toList();
                runs.computeIfAbsent(
                                shape,
                                key -> new LayerRun(BenchRun.name(file, all), new ArrayList<>()))
                        .records
                        .add(each);
            }
        }
        return List.copyOf(runs.values());
    }

    /** The plot has no place for anything else. */
    private static void requireMeasured(Path file, JsonNode each) {
        JsonNode tokens = each.path("tokens");
        boolean some = tokens.canConvertToInt() && tokens.asInt() > 0;
        if (!some || !Samples.isTime(each.path(MARK).asDouble())) {
            throw new UsageException(
                    "%s: a record has tokens=%s and %s=%s, but both must be numbers above 0"
                            .formatted(file, tokens, MARK, each.path(MARK)));
        }
    }

    private static String text(JsonNode record, String field) {
        return record.path(field).asText();
    }

    /** Java and Python write the name of a processor differently. */
    private static String shape(JsonNode record, String field) {
        return text(record, field).toLowerCase(Locale.ROOT);
    }

    private static String who(JsonNode each) {
        return text(each, "layer") + ", " + text(each, "mode");
    }

    private static String micros(JsonNode each, String part) {
        return JsonRecords.number(each.path(part), 0);
    }

    void addTo(ReportPage page) {
        Map<String, Charts.Line> lines = new LinkedHashMap<>();
        for (JsonNode each : records) {
            lines.computeIfAbsent(who(each), key -> new Charts.Line())
                    .add(each.path("tokens").asDouble(), each.path(MARK).asDouble());
        }
        page.section(
                        name + ": a layer of a model",
                        ("%s ranks (%s), hidden %s, experts of %s channels, top-%s of %s. Ranks wait for their GPU after each"
                                        + " part, but not within the whole.")
                                .formatted(
                                        JsonRecords.texts(
                                                records.getFirst(),
                                                "ranks",
                                                "device",
                                                "hidden",
                                                "intermediate",
                                                "topk",
                                                "experts")))
                .table(
                        "Microseconds, means of the slowest rank",
                        records,
                        new TextTable<JsonNode>()
                                .text("layer", LayerRun::who)
                                .right("tokens", each -> text(each, "tokens"))
                                .right("gate", each -> micros(each, "gateMicros"))
                                .right("dispatch", each -> micros(each, "dispatchMicros"))
                                .right("experts", each -> micros(each, "expertsMicros"))
                                .right("combine", each -> micros(each, "combineMicros"))
                                .right("whole", each -> micros(each, MARK)))
                .plot(
                        name + "-layer.svg",
                        "Time of the whole layer by tokens of each rank, in microseconds",
                        Charts.lines("Time of a layer", "tokens per rank", "µs", lines));
    }
}
