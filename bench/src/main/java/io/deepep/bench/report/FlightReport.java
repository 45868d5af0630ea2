package io.deepep.bench.report;

import io.deepep.bench.chart.Charts;
import io.deepep.bench.report.FlightSummary.Calls;
import io.deepep.bench.text.Decimals;
import io.deepep.bench.text.TextTable;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalDouble;
import java.util.stream.IntStream;

/** The sections about a flight recording. Its plots are named as those of no run are. */
final class FlightReport {
    private static final double MEGA = 1e6;

    private FlightReport() {}

    static void add(ReportPage page, FlightSummary flight) {
        addTimes(page, flight);
        addWaits(page, flight);
        flight.traffic.forEach((operation, bytes) -> addTraffic(page, operation, bytes));
        flight.experts.forEach(
                (mode, tokens) ->
                        ExpertLoad.add(
                                page,
                                "Flight recording: expert load, " + mode + " mode",
                                "flight-experts-" + mode + ".svg",
                                "Tokens of each expert over all recorded dispatches."
                                        + flight.absentExperts(mode),
                                tokens,
                                flight.ranksOfExperts));
    }

    private static void addTimes(ReportPage page, FlightSummary flight) {
        List<Calls> calls = List.copyOf(flight.calls.values());
        page.section(
                        "Flight recording: time by operation",
                        "All ranks, without "
                                + flight.skipped()
                                + " warm-up calls (--warmups): the time that host threads spent in a call, waits for other"
                                + " ranks included, and the time of its kernels where there are GPUs.")
                .plot(
                        "flight-times.svg",
                        "Median host time of each operation",
                        Charts.bars(
                                "Host time by operation",
                                "µs, median of the calls",
                                List.copyOf(flight.calls.keySet()),
                                calls.stream().map(each -> each.hostMicros(50)).toList(),
                                OptionalDouble.empty()))
                .table(
                        "Calls",
                        calls,
                        new TextTable<Calls>()
                                .text("operation", each -> each.name)
                                .right("calls", each -> each.count)
                                .right("failed", each -> each.failed)
                                .right("end not seen", each -> each.unfinished)
                                .right("host p50", each -> Quantity.micros(each.hostMicros(50)))
                                .right("host p99", each -> Quantity.micros(each.hostMicros(99)))
                                .right("GPU p50", each -> Quantity.micros(each.deviceMicros(50)))
                                .right("NVLink", each -> Quantity.bytes(each.nvlinkBytes))
                                .right("RDMA", each -> Quantity.bytes(each.rdmaBytes)));
    }

    /** Rows are those who waited, columns those who kept them. */
    private static void addWaits(ReportPage page, FlightSummary flight) {
        String title = "Flight recording: who waited for whom";
        if (flight.waits.length == 0) {
            page.section(title, "No waits were recorded: recordings may lack the events.");
            return;
        }
        double[][] millis = scaled(flight.waits, 1e-6);
        long[] caused = flight.caused();
        page.section(
                        title,
                        "Milliseconds in which a rank could only wait because another was missing, of all calls"
                                + " whose end the host saw. "
                                + Peak.of(caused)
                                        .map(
                                                slowest ->
                                                        Decimals.of(
                                                                "Rank "
                                                                        + slowest.index()
                                                                        + " kept the others longest: %.0f %% of all waits.",
                                                                100 * slowest.share()))
                                        .orElse("Nobody waited."))
                .plot(
                        "flight-waits.svg",
                        "Milliseconds that each rank waited for each rank",
                        Charts.heatMap("Waits, ms", "rank that waited", "rank waited for", millis))
                .table(
                        "By rank",
                        IntStream.range(0, caused.length).boxed().toList(),
                        new TextTable<Integer>()
                                .right("rank", rank -> rank)
                                .right(
                                        "waited",
                                        rank ->
                                                Quantity.micros(
                                                        1e3 * Arrays.stream(millis[rank]).sum()))
                                .right(
                                        "was waited for",
                                        rank -> Quantity.micros(caused[rank] / 1e3)));
    }

    private static void addTraffic(ReportPage page, String operation, long[][] bytes) {
        page.section(
                        "Flight recording: traffic matrix of " + operation,
                        "Megabytes over all recorded calls. What a rank keeps is on the diagonal.")
                .plot(
                        "flight-traffic-" + operation.replace(' ', '-') + ".svg",
                        "Megabytes from each rank to each rank",
                        Charts.heatMap(
                                "MB, " + operation,
                                "from rank",
                                "to rank",
                                scaled(bytes, 1 / MEGA)));
    }

    private static double[][] scaled(long[][] values, double factor) {
        return Arrays.stream(values)
                .map(row -> Arrays.stream(row).mapToDouble(value -> value * factor).toArray())
                .toArray(double[][]::new);
    }
}
