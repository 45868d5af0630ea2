package io.deepep.bench.report;

import io.deepep.bench.chart.Charts;
import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.report.ReportPage.Grid;
import io.deepep.bench.report.ReportPage.Section;
import io.deepep.bench.run.UsageException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;

/** Two runs beside each other: records of the same operation, tokens and multiprocessors. */
final class RunComparison {
    private RunComparison() {}

    /**
     * Adds the section.
     *
     * @throws UsageException if the runs have no record in common
     */
    static void add(ReportPage page, BenchRun before, BenchRun after) {
        Map<String, OperationRecord> former = new LinkedHashMap<>();
        before.records().forEach(each -> former.put(key(each), each));
        List<String> names = new ArrayList<>();
        List<Double> shares = new ArrayList<>();
        Grid grid =
                new Grid(after.name() + " beside " + before.name())
                        .text("operation")
                        .number("tokens")
                        .number("SMs")
                        .number("before")
                        .number("after")
                        .number("after / before");
        for (OperationRecord each : after.records()) {
            OperationRecord was = former.get(key(each));
            if (was == null) {
                continue;
            }
            double share = 100 * each.p50Micros() / was.p50Micros();
            names.add(key(each));
            shares.add(share);
            grid.row(
                    false,
                    OperationNames.of(each),
                    each.tokens(),
                    each.sms(),
                    Quantity.micros(was.p50Micros()),
                    Quantity.micros(each.p50Micros()),
                    Quantity.percent(share / 100));
        }
        if (names.isEmpty()) {
            throw new UsageException(
                    "--compare: %s and %s have no operation with the same tokens and SMs"
                            .formatted(before.name(), after.name()));
        }
        Section section =
                page.section(
                        after.name() + " compared with " + before.name(),
                        ("Time after, as a share of the time before: below 100 %% is faster. Median of the slowest rank."
                                        + " Before: commit %s, %s. After: commit %s, %s.")
                                .formatted(
                                        before.any().commit(),
                                        before.machine(),
                                        after.any().commit(),
                                        after.machine()));
        section.plot(
                after.name() + "-comparison.svg",
                "Time of each operation as a share of the time before",
                Charts.bars(
                        "Time after / time before",
                        "% of the time before",
                        names,
                        shares,
                        OptionalDouble.of(100)));
        section.tables().add(grid);
    }

    private static String key(OperationRecord each) {
        return OperationNames.of(each)
                + ", "
                + each.tokens()
                + " tokens"
                + (each.gpu() == null ? "" : ", " + each.sms() + " SMs");
    }
}
