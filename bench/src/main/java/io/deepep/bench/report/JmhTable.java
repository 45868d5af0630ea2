package io.deepep.bench.report;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.StringJoiner;

/** Markdown of what JMH recorded. */
final class JmhTable {
    private static final String GARBAGE = "gc.alloc.rate.norm";

    private JmhTable() {}

    /** What {@code deepep jmh -rf json -rff FILE} wrote: a row each, with the error of 99.9 %. */
    static String markdown(Path file) {
        List<JsonNode> results = JsonRecords.read(file, "benchmark", "deepep jmh -rf json");
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
                            JsonRecords.number(metric.path("score"), 1),
                            metric.path("scoreUnit").asText().replace("us/", "µs/"),
                            JsonRecords.number(metric.path("scoreError"), 1)));
            if (garbage) {
                JsonNode bytes = garbageOf(each);
                out.append(' ');
                out.append(
                        bytes.isMissingNode()
                                ? ""
                                : JsonRecords.number(bytes.path("score"), 1)
                                        + " ± "
                                        + JsonRecords.number(bytes.path("scoreError"), 1));
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
        return MissingNode.getInstance();
    }

    private static String parameters(JsonNode params) {
        StringJoiner text = new StringJoiner(", ");
        params.properties()
                .forEach(each -> text.add(each.getKey() + " " + each.getValue().asText()));
        return text.toString();
    }
}
