package io.deepep.bench.report;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.deepep.bench.run.UsageException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.StringJoiner;

/** Markdown of records that are not of single operations: JMH's, and the decoding loop's. */
final class LoopTables {
    private static final String GARBAGE = "gc.alloc.rate.norm";
    private static final ObjectMapper JSON = new ObjectMapper();

    private LoopTables() {}

    /** What {@code deepep jmh -rf json -rff FILE} wrote: a row each, with the error of 99.9 %. */
    static String jmh(Path file) {
        List<JsonNode> results = read(file, "benchmark", "deepep jmh -rf json");
        boolean garbage = results.stream().anyMatch(each -> !garbageOf(each).isMissingNode());
        StringBuilder out = new StringBuilder();
        out.append("| benchmark | parameters | score | error |");
        out.append(garbage ? " bytes per call |\n" : "\n");
        out.append("|---|---|--:|--:|").append(garbage ? "--:|\n" : "\n");
        for (JsonNode each : results) {
            String path = each.path("benchmark").asText();
            int method = path.lastIndexOf('.');
            JsonNode metric = each.path("primaryMetric");
            out.append(
                    String.format(
                            Locale.ROOT,
                            "| `%s` | %s | %s %s | ± %s |",
                            path.substring(path.lastIndexOf('.', method - 1) + 1),
                            parameters(each.path("params")),
                            number(metric.path("score")),
                            metric.path("scoreUnit").asText().replace("us/", "µs/"),
                            number(metric.path("scoreError"))));
            if (garbage) {
                JsonNode bytes = garbageOf(each);
                out.append(' ');
                out.append(
                        bytes.isMissingNode()
                                ? ""
                                : number(bytes.path("score"))
                                        + " ± "
                                        + number(bytes.path("scoreError")));
                out.append(" |");
            }
            out.append('\n');
        }
        return out.toString();
    }

    /** JMH's profilers once began their names with a dot of their own. */
    private static JsonNode garbageOf(JsonNode result) {
        for (var metric : result.path("secondaryMetrics").properties()) {
            if (metric.getKey().endsWith(GARBAGE)) {
                return metric.getValue();
            }
        }
        return JSON.missingNode();
    }

    private static String parameters(JsonNode params) {
        StringJoiner text = new StringJoiner(", ");
        params.properties()
                .forEach(each -> text.add(each.getKey() + " " + each.getValue().asText()));
        return text.toString();
    }

    private static String number(JsonNode value) {
        return value.isNumber() ? String.format(Locale.ROOT, "%.1f", value.asDouble()) : "";
    }

    /** What {@code deepep bench decode --json FILE} wrote. */
    static String decode(Path file) {
        StringBuilder out =
                new StringBuilder(
                        "| tokens | SMs | GPU alone | launched by Java | as a graph | host per call |"
                                + " a bare launch | garbage per call |\n"
                                + "|--:|--:|--:|--:|--:|--:|--:|--:|\n");
        for (JsonNode each : read(file, "launchedMicros", "deepep bench decode --json")) {
            List<String> cells = new ArrayList<>();
            cells.add(each.path("tokens").asText());
            cells.add(each.path("sms").asText());
            cells.add(number(each.path("gpuMicros")));
            cells.add(number(each.path("launchedMicros")));
            cells.add(number(each.path("graphMicros")));
            cells.add(twoDigits(each.path("callMicros")));
            cells.add(twoDigits(each.path("bareLaunchMicros")));
            cells.add(number(each.path("bytesPerCall")));
            out.append("| ").append(String.join(" | ", cells)).append(" |\n");
        }
        return out.toString();
    }

    private static String twoDigits(JsonNode value) {
        return value.isNumber() ? String.format(Locale.ROOT, "%.2f", value.asDouble()) : "";
    }

    private static List<JsonNode> read(Path file, String field, String writer) {
        try {
            List<JsonNode> results = new ArrayList<>();
            JSON.readTree(file.toFile()).forEach(results::add);
            if (results.isEmpty() || results.stream().anyMatch(each -> !each.has(field))) {
                throw new UsageException(file + " is not what " + writer + " writes");
            }
            return results;
        } catch (IOException unreadable) {
            throw new UsageException("cannot read " + file + ": " + unreadable.getMessage());
        }
    }
}
