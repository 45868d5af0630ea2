package io.deepep.bench.report;

import io.deepep.bench.chart.Charts;
import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.measure.RoutingCounts;
import io.deepep.bench.text.TextTable;
import java.util.Arrays;
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
        List<OperationRecord> best = run.fastest();
        page.section(
                        run.name() + ": time by operation",
                        "%s. %s. Slowest rank, median of %s runs; bytes of all ranks together. Commit %s%s, %s."
                                .formatted(
                                        run.machine(),
                                        run.shape(),
                                        any.repeats(),
                                        any.commit(),
                                        any.gpu() == null ? "" : ", " + any.gpu().driver(),
                                        any.time()))
                .plot(
                        run.name() + "-time.svg",
                        "Time of each operation of " + run.name() + " in microseconds",
                        OperationCharts.bars(false, best))
                .table(
                        "All records of " + run.name(),
                        run.records(),
                        each -> !best.contains(each),
                        new TextTable<OperationRecord>()
                                .text("operation", OperationNames::of)
                                .right("tokens", OperationRecord::tokens)
                                .right("SMs", OperationRecord::sms)
                                .right("p50", each -> Quantity.micros(each.p50Micros()))
                                .right("p99", each -> Quantity.micros(each.p99Micros()))
                                .right("max", each -> Quantity.micros(each.maxMicros()))
                                .right("NVLink", each -> Quantity.bytes(each.nvlinkBytes()))
                                .right("RDMA", each -> Quantity.bytes(each.rdmaBytes()))
                                .right(
                                        "rate",
                                        each -> Quantity.bytesPerSecond(BenchRun.bandwidth(each)))
                                .right(
                                        "share of ceiling",
                                        each -> Quantity.percent(BenchRun.share(each))));
    }

    private void addShares() {
        List<OperationRecord> best = run.fastestWithShare();
        if (best.isEmpty()) {
            return;
        }
        page.section(
                        run.name() + ": share of the ceiling",
                        run.any().gpu() != null
                                ? "Rows that cross links, against the best bare copy of the same run. An operation can"
                                        + " be a little better than a bare copy."
                                : "Bytes read and written, against a memory copy of the same run.")
                .plot(
                        run.name() + "-share.svg",
                        "Share of the ceiling that each operation of " + run.name() + " reaches",
                        OperationCharts.bars(true, best));
    }

    private void addTraffic(OperationRecord any) {
        RoutingCounts counts = any.routing();
        long rows =
                counts.rows().stream().flatMap(List::stream).mapToLong(Integer::longValue).sum();
        long selections = Arrays.stream(ExpertLoad.tokens(counts)).sum();
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
        page.section(
                        run.name() + ": traffic matrix",
                        "Rows of one "
                                + OperationNames.of(any)
                                + " by source and destination, each row counted once per destination rank."
                                + " What a rank keeps is on the diagonal and crosses no link.")
                .plot(
                        run.name() + "-traffic.svg",
                        "Megabytes from each rank to each rank",
                        Charts.heatMap(
                                "MB of one " + OperationNames.of(any),
                                "from rank",
                                "to rank",
                                megabytes));
    }

    private void addExperts(RoutingCounts counts) {
        ExpertLoad.add(
                page,
                run.name() + ": expert load",
                run.name() + "-experts.svg",
                "Selections of each expert by the tokens of all ranks.",
                ExpertLoad.tokens(counts),
                counts.rows().size());
    }
}
