package io.deepep.bench.report;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import io.deepep.bench.text.TextTable;
import java.nio.file.Path;
import java.util.List;
import java.util.StringJoiner;

/** Markdown of what JMH recorded. */
final class JmhTable {
    private static final String GARBAGE = "gc.alloc.rate.norm";

    private JmhTable() {}

    /** What {@code deepep jmh -rf json -rff FILE} wrote: a row each, with the error of 99.9 %. */
    static String markdown(Path file) {
        List<JsonNode> results = JsonRecords.read(file, "benchmark", "deepep jmh -rf json");
        boolean garbage = results.stream().anyMatch(each -> !garbageOf(each).isMissingNode());
        TextTable<JsonNode> table =
                new TextTable<JsonNode>()
                        .text(
                                "benchmark",
                                each -> "`" + name(each.path("benchmark").asText()) + "`")
                        .text("parameters", each -> parameters(each.path("params")))
                        .right("score", each -> score(each.path("primaryMetric")))
                        .right("error", each -> error(each.path("primaryMetric")));
        if (garbage) {
            table.right("bytes per call", each -> bytes(garbageOf(each)));
        }
        return table.markdown(results);
    }

    private static String score(JsonNode metric) {
        return JsonRecords.number(metric.path("score"), 1)
                + " "
                + metric.path("scoreUnit").asText().replace("us/", "µs/");
    }

    /** Class and method. */
    private static String name(String path) {
        return path.substring(path.lastIndexOf('.', path.lastIndexOf('.') - 1) + 1);
    }

    private static String bytes(JsonNode garbage) {
        return (JsonRecords.number(garbage.path("score"), 1) + " " + error(garbage)).strip();
    }

    /** Nothing for NaN, which JMH writes of a single run. */
    private static String error(JsonNode metric) {
        String error = JsonRecords.number(metric.path("scoreError"), 1);
        return error.isEmpty() ? "" : "± " + error;
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
