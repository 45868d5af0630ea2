package io.deepep.bench.plan;

import io.deepep.bench.plan.Reference.Outcome;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.DoubleStream;

/** Predictions beside measured times, as the Markdown table of docs/guides/planning.md. */
final class Comparison {
    private Comparison() {}

    /** The table and a line that sums it up. */
    static List<String> markdown(List<Outcome> outcomes) {
        List<String> lines = new ArrayList<>();
        lines.add(
                "| measured by | mode | ranks | tokens | routing | operation | measured | in µs | predicted µs | error | bottleneck |");
        lines.add("|---|---|---|---|---|---|---|---|---|---|---|");
        outcomes.forEach(outcome -> lines.add(row(outcome)));
        lines.add("");
        lines.add(
                "Fitted: "
                        + errors(outcomes.stream().filter(each -> each.time().fitted()).toList())
                        + ". Predicted: "
                        + errors(outcomes.stream().filter(each -> !each.time().fitted()).toList())
                        + ".");
        return lines;
    }

    private static String row(Outcome outcome) {
        Reference reference = outcome.reference();
        Reference.Time time = outcome.time();
        return String.format(
                Locale.ROOT,
                "| %s | %s | %d | %d | %s | %s %s | %s %s | %s | %s | %+.1f %%%s | %s |",
                reference.source(),
                reference.mode(),
                reference.topology().numRanks(),
                reference.shape().numTokens(),
                RoutingChoice.describe(reference.gate()),
                time.op(),
                time.dtype(),
                number(time.figure()),
                time.bandwidth() ? "GB/s" : "µs",
                number(outcome.measuredMicros()),
                number(outcome.predictedMicros()),
                tenths(percent(outcome)),
                time.fitted() ? " (fitted)" : "",
                outcome.plan().bottleneck());
    }

    /** Three digits at least. */
    private static String number(double value) {
        return String.format(Locale.ROOT, value < 100 ? "%.1f" : "%.0f", value);
    }

    /** Rounded, and never a negative zero. */
    private static double tenths(double value) {
        return Math.round(10 * value) / 10.0;
    }

    private static String errors(List<Outcome> outcomes) {
        return String.format(
                Locale.ROOT,
                "%d rows, mean absolute error %.1f %%, largest %.1f %%",
                outcomes.size(),
                absolute(outcomes).average().orElse(0),
                absolute(outcomes).max().orElse(0));
    }

    private static DoubleStream absolute(List<Outcome> outcomes) {
        return outcomes.stream().mapToDouble(outcome -> Math.abs(percent(outcome)));
    }

    private static double percent(Outcome outcome) {
        return 100 * outcome.error();
    }
}
