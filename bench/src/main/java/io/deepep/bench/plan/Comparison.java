package io.deepep.bench.plan;

import io.deepep.bench.text.Decimals;
import io.deepep.bench.text.TextTable;
import io.deepep.planner.Reference;
import io.deepep.planner.Reference.Outcome;
import java.util.List;
import java.util.Locale;
import java.util.stream.DoubleStream;

/** Predictions beside measured times, as the Markdown table of docs/guides/planning.md. */
final class Comparison {
    private Comparison() {}

    /** The table and a line that sums it up. */
    static String markdown(List<Outcome> outcomes) {
        return new TextTable<Outcome>()
                        .text("measured by", each -> each.reference().source())
                        .text("mode", each -> each.reference().mode())
                        .text("ranks", each -> each.reference().topology().numRanks())
                        .text("tokens", each -> each.reference().shape().numTokens())
                        .text("routing", each -> RoutingChoice.describe(each.reference().gate()))
                        .text("operation", each -> each.time().op() + " " + each.time().dtype())
                        .text("measured", each -> figure(each.time()))
                        .text("in µs", each -> number(each.measuredMicros()))
                        .text("predicted µs", each -> number(each.predictedMicros()))
                        .text("error", Comparison::error)
                        .text("bottleneck", each -> each.plan().bottleneck())
                        .markdown(outcomes)
                + "\nFitted: "
                + errors(outcomes.stream().filter(each -> each.time().fitted()).toList())
                + ". Predicted: "
                + errors(outcomes.stream().filter(each -> !each.time().fitted()).toList())
                + ".\n";
    }

    private static String figure(Reference.Time time) {
        return number(time.figure()) + (time.bandwidth() ? " GB/s" : " µs");
    }

    private static String error(Outcome outcome) {
        String error = Decimals.of("%+.1f %%", tenths(percent(outcome)));
        return outcome.time().fitted() ? error + " (fitted)" : error;
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
