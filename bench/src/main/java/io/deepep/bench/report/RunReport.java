package io.deepep.bench.report;

import io.deepep.bench.chart.Charts;
import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.measure.RoutingCounts;
import io.deepep.bench.report.ReportPage.Grid;
import io.deepep.bench.report.ReportPage.Section;
import java.util.List;

/** The sections about a run of a bench. */
record RunReport(ReportPage page, BenchRun run) {
    private static final double MEGA = 1e6;

    static void add(ReportPage page, BenchRun run) {
        RunReport report = new RunReport(page, run);
        report.addTimes();
        report.addShares();
        OperationRecord routed = run.routed();
        if (routed != null) {
            report.addTraffic(routed);
            report.addExperts(routed.routing());
        }
    }

    private void addTimes() {
        OperationRecord any = run.any();
        Section section =
                page.section(
                        run.name() + ": time by operation",
                        "%s. %s. Slowest rank, median of %s runs. Commit %s%s, %s."
                                .formatted(
                                        run.machine(),
                                        run.shape(),
                                        any.repeats(),
                                        any.commit(),
                                        any.gpu() == null ? "" : ", " + any.gpu().driver(),
                                        any.time()));
        List<OperationRecord> best = run.fastest();
        section.plot(
                run.name() + "-time.svg",
                "Time of each operation of " + run.name() + " in microseconds",
                OperationCharts.bars("Time by operation", false, best));
        Grid grid =
                new Grid("All records of " + run.name())
                        .text("operation")
                        .number("SMs")
                        .number("p50")
                        .number("p99")
                        .number("max")
                        .number("NVLink")
                        .number("RDMA")
                        .number("rate")
                        .number("share of ceiling");
        for (OperationRecord each : run.records()) {
            grid.row(
                    !best.contains(each),
                    OperationNames.of(each),
                    each.sms(),
                    Quantity.micros(each.p50Micros()),
                    Quantity.micros(each.p99Micros()),
                    Quantity.micros(each.maxMicros()),
                    Quantity.bytes(each.nvlinkBytes()),
                    Quantity.bytes(each.rdmaBytes()),
                    Quantity.bytesPerSecond(BenchRun.bandwidth(each)),
                    Quantity.percent(BenchRun.share(each)));
        }
        section.tables().add(grid);
    }

    private void addShares() {
        List<OperationRecord> best = run.fastestWithShare();
        if (best.isEmpty()) {
            return;
        }
        boolean gpu = run.any().gpu() != null;
        Section section =
                page.section(
                        run.name() + ": share of the ceiling",
                        gpu
                                ? "Rows that cross links, against the best bare copy of the same run. An operation can"
                                        + " be a little better than a bare copy."
                                : "Bytes read and written, against a memory copy of the same run.");
        section.plot(
                run.name() + "-share.svg",
                "Share of the ceiling that each operation of " + run.name() + " reaches",
                OperationCharts.bars("Share of the ceiling", true, best));
    }

    private void addTraffic(OperationRecord any) {
        RoutingCounts counts = any.routing();
        long rows = counts.rows().stream().mapToLong(RunReport::sum).sum();
        long selections = sum(counts.expertTokens());
        // Old records of few tokens carry the counts of the most.
        boolean ofOthers = selections > (long) any.ranks() * any.tokens() * any.topk();
        if (!any.op().contains("dispatch") || rows == 0 || ofOthers) {
            return;
        }
        boolean perSelection = any.op().startsWith("ll-");
        double rowBytes = (double) any.logicalBytes() / (perSelection ? selections : rows);
        double[][] megabytes =
                counts.rows().stream()
                        .map(row -> row.stream().mapToDouble(n -> n * rowBytes / MEGA).toArray())
                        .toArray(double[][]::new);
        Section section =
                page.section(
                        run.name() + ": traffic matrix",
                        "Rows of one "
                                + OperationNames.of(any)
                                + " by source and destination, each row counted once per destination rank."
                                + " What a rank keeps is on the diagonal and crosses no link.");
        section.plot(
                run.name() + "-traffic.svg",
                "Megabytes from each rank to each rank",
                Charts.heatMap(
                        "MB of one " + OperationNames.of(any), "from rank", "to rank", megabytes));
    }

    private static long sum(List<Integer> counts) {
        return counts.stream().mapToLong(Integer::longValue).sum();
    }

    private void addExperts(RoutingCounts counts) {
        long[] tokens = counts.expertTokens().stream().mapToLong(Integer::longValue).toArray();
        ExpertLoad.add(
                page,
                run.name() + ": expert load",
                run.name() + "-experts.svg",
                "Selections of each expert by the tokens of all ranks.",
                tokens,
                counts.rows().size());
    }
}
