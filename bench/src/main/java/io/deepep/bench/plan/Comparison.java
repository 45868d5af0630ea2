package io.deepep.bench.plan;

import io.deepep.bench.text.Decimals;
import io.deepep.bench.text.MarkdownTable;
import io.deepep.planner.Reference;
import io.deepep.planner.Reference.Outcome;
import java.util.List;
import java.util.Locale;
import java.util.stream.DoubleStream;

/** Predictions beside measured times, as the Markdown table of docs/guides/planning.md. */
final class Comparison {
    private static final List<String> HEAD =
            List.of(
                    "measured by",
                    "mode",
                    "ranks",
                    "tokens",
                    "routing",
                    "operation",
                    "measured",
                    "in µs",
                    "predicted µs",
                    "error",
                    "bottleneck");

    private Comparison() {}

    /** The table and a line that sums it up. */
    static String markdown(List<Outcome> outcomes) {
        MarkdownTable table = new MarkdownTable(HEAD.size(), HEAD);
        outcomes.forEach(outcome -> table.row(row(outcome)));
        return table
                + "\nFitted: "
                + errors(outcomes.stream().filter(each -> each.time().fitted()).toList())
                + ". Predicted: "
                + errors(outcomes.stream().filter(each -> !each.time().fitted()).toList())
                + ".\n";
    }

    private static String[] row(Outcome outcome) {
        Reference reference = outcome.reference();
        Reference.Time time = outcome.time();
        return new String[] {
            reference.source(),
            reference.mode().toString(),
            "" + reference.topology().numRanks(),
            "" + reference.shape().numTokens(),
            RoutingChoice.describe(reference.gate()),
            time.op() + " " + time.dtype(),
            number(time.figure()) + (time.bandwidth() ? " GB/s" : " µs"),
            number(outcome.measuredMicros()),
            number(outcome.predictedMicros()),
            Decimals.of("%+.1f %%", tenths(percent(outcome))) + (time.fitted() ? " (fitted)" : ""),
            outcome.plan().bottleneck().toString()
        };
    }

    /** Three digits at least. */
    private static String number(double value) {
        return Decimals.of(value < 100 ? "%.1f" : "%.0f", value);
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
