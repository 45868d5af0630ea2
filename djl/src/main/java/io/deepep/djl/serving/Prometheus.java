package io.deepep.djl.serving;

import java.util.List;
import java.util.Locale;
import java.util.Map;

/** The counters in Prometheus' text format. */
final class Prometheus {
    static final String CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

    private static final double NANOS_PER_SECOND = 1e9;

    private Prometheus() {}

    /** One family of metrics: an attribute of every exchange. A total is a counter. */
    private record Family(String name, String attribute, String help) {}

    private static final List<Family> FAMILIES =
            List.of(
                    new Family("healthy", "Healthy", "1 if the last exchange succeeded."),
                    new Family("exchanges_total", "Exchanges", "Exchanges begun."),
                    new Family("failures_total", "Failures", "Exchanges that failed."),
                    new Family("tokens_sent_total", "TokensSent", "Tokens dispatched."),
                    new Family(
                            "rows_received_total", "RowsReceived", "Rows of the rank's experts."),
                    new Family("seconds_total", "Nanos", "Time in exchanges, experts included."),
                    new Family("expert_seconds_total", "ExpertNanos", "Of it, in experts."),
                    new Family("expert_rows_total", "ExpertRows", "Rows of each local expert."));

    static String write(List<Map<String, Object>> exchanges) {
        StringBuilder text = new StringBuilder();
        for (Family family : FAMILIES) {
            String name = "deepep_" + family.name;
            String type = name.endsWith("_total") ? "counter" : "gauge";
            text.append("# HELP %s %s\n# TYPE %s %s\n".formatted(name, family.help, name, type));
            for (Map<String, Object> exchange : exchanges) {
                write(text, name, exchange, exchange.get(family.attribute));
            }
        }
        return text.toString();
    }

    private static void write(
            StringBuilder text, String name, Map<String, Object> exchange, Object value) {
        String labels =
                String.format(
                        Locale.ROOT,
                        "rank=\"%s\",mode=\"%s\",device=\"%s\",id=\"%s\"",
                        exchange.get("Rank"),
                        exchange.get("Mode"),
                        exchange.get("Device"),
                        exchange.get("Id"));
        switch (value) {
            case long[] perExpert -> {
                for (int e = 0; e < perExpert.length; e++) {
                    line(text, name, labels + ",local_expert=\"" + e + "\"", perExpert[e]);
                }
            }
            case Boolean flag -> line(text, name, labels, flag ? 1 : 0);
            case Long nanos when name.endsWith("seconds_total") ->
                    line(text, name, labels, nanos / NANOS_PER_SECOND);
            case Long count -> line(text, name, labels, count);
            default -> throw new AssertionError(name + " is a " + value.getClass());
        }
    }

    private static void line(StringBuilder text, String name, String labels, Object value) {
        text.append(name).append('{').append(labels).append("} ").append(value).append('\n');
    }
}
