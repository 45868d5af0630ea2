package io.deepep.djl.serving;

import java.util.List;
import java.util.Locale;
import java.util.Map;

/** The counters in Prometheus' text format. */
final class Prometheus {
    static final String CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

    private static final double NANOS_PER_SECOND = 1e9;

    private Prometheus() {}

    /** One family of metrics: an attribute of every exchange. */
    private record Family(String name, String type, String help, String attribute) {}

    private static final List<Family> FAMILIES =
            List.of(
                    new Family("healthy", "gauge", "1 if the last exchange succeeded.", "Healthy"),
                    new Family("exchanges_total", "counter", "Exchanges begun.", "Exchanges"),
                    new Family("failures_total", "counter", "Exchanges that failed.", "Failures"),
                    new Family("tokens_sent_total", "counter", "Tokens dispatched.", "TokensSent"),
                    new Family(
                            "rows_received_total",
                            "counter",
                            "Rows that the rank's experts computed.",
                            "RowsReceived"),
                    new Family(
                            "seconds_total",
                            "counter",
                            "Time in exchanges, experts included.",
                            "Nanos"),
                    new Family(
                            "expert_seconds_total", "counter", "Of it, in experts.", "ExpertNanos"),
                    new Family(
                            "expert_rows_total",
                            "counter",
                            "Rows that each local expert computed.",
                            "ExpertRows"));

    static String write(List<Map<String, Object>> exchanges) {
        StringBuilder text = new StringBuilder();
        for (Family family : FAMILIES) {
            String name = "deepep_" + family.name;
            text.append("# HELP ").append(name).append(' ').append(family.help).append('\n');
            text.append("# TYPE ").append(name).append(' ').append(family.type).append('\n');
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
