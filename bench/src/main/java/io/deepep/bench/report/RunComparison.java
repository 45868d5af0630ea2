package io.deepep.bench.report;

import io.deepep.bench.chart.Charts;
import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.run.UsageException;
import io.deepep.bench.text.TextTable;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;

/** Two runs beside each other: records of the same operation, tokens and multiprocessors. */
final class RunComparison {
    private RunComparison() {}

    /** A record beside that of the same operation in the run before. */
    private record Pair(OperationRecord before, OperationRecord after) {
        double share() {
            return after.p50Micros() / before.p50Micros();
        }
    }

    /**
     * Adds the section.
     *
     * @throws UsageException if the runs have no record in common
     */
    static void add(ReportPage page, BenchRun before, BenchRun after) {
        Map<String, OperationRecord> former = new HashMap<>();
        before.records().forEach(each -> former.put(key(each), each));
        List<Pair> pairs =
                after.records().stream()
                        .filter(each -> former.containsKey(key(each)))
                        .map(each -> new Pair(former.get(key(each)), each))
                        .toList();
        if (pairs.isEmpty()) {
            throw new UsageException(
                    "--compare: %s and %s have no operation with the same tokens and SMs; give two runs of one bench"
                            .formatted(before.name(), after.name()));
        }
        page.section(
                        after.name() + " compared with " + before.name(),
                        ("Time after, as a share of the time before: below 100 %% is faster. Median of the slowest rank."
                                        + " Before: %s. After: %s.")
                                .formatted(source(before), source(after)))
                .plot(
                        after.name() + "-comparison.svg",
                        "Time of each operation as a share of the time before",
                        Charts.bars(
                                "Time after / time before",
                                "% of the time before",
                                pairs.stream().map(pair -> key(pair.after())).toList(),
                                pairs.stream().map(pair -> 100 * pair.share()).toList(),
                                OptionalDouble.of(100)))
                .table(
                        after.name() + " beside " + before.name(),
                        pairs,
                        new TextTable<Pair>()
                                .text("operation", pair -> OperationNames.of(pair.after()))
                                .right("tokens", pair -> pair.after().tokens())
                                .right("SMs", pair -> pair.after().sms())
                                .right("before", pair -> Quantity.micros(pair.before().p50Micros()))
                                .right("after", pair -> Quantity.micros(pair.after().p50Micros()))
                                .right("after / before", pair -> Quantity.percent(pair.share())));
    }

    private static String source(BenchRun run) {
        return "commit %s, %s, %s".formatted(run.any().commit(), run.machine(), run.shape());
    }

    private static String key(OperationRecord each) {
        return OperationNames.of(each) + ", " + each.tokens() + " tokens, " + each.sms() + " SMs";
    }
}
