package io.deepep.bench.report;

import io.deepep.bench.chart.Charts;
import io.deepep.bench.report.ReportPage.Grid;
import io.deepep.bench.report.ReportPage.Section;
import io.deepep.bench.text.Decimals;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalDouble;

/** The sections about a flight recording. */
final class FlightReport {
    private static final double MEGA = 1e6;

    private FlightReport() {}

    static void add(ReportPage page, FlightSummary flight) {
        addTimes(page, flight);
        addWaits(page, flight);
        flight.traffic().forEach((operation, bytes) -> addTraffic(page, operation, bytes));
        int numRanks = flight.traffic().values().stream().mapToInt(m -> m.length).max().orElse(1);
        flight.experts()
                .forEach(
                        (mode, tokens) ->
                                ExpertLoad.add(
                                        page,
                                        "Flight recording: expert load, " + mode + " mode",
                                        "flight-experts-" + mode + ".svg",
                                        "Tokens of each expert over all recorded dispatches.",
                                        tokens,
                                        numRanks));
    }

    private static void addTimes(ReportPage page, FlightSummary flight) {
        Section section =
                page.section(
                        "Flight recording: time by operation",
                        "All ranks, without "
                                + flight.skipped()
                                + " warm-up calls (--warmups): the time that host threads spent in a call, waits for other"
                                + " ranks included, and the time of its kernels where there are GPUs.");
        Grid grid =
                new Grid("Calls")
                        .text("operation")
                        .number("calls")
                        .number("failed")
                        .number("end not seen")
                        .number("host p50")
                        .number("host p99")
                        .number("GPU p50")
                        .number("NVLink")
                        .number("RDMA");
        List<String> names = new ArrayList<>();
        List<Double> medians = new ArrayList<>();
        flight.calls()
                .forEach(
                        (name, calls) -> {
                            names.add(name);
                            medians.add(calls.hostMicros(50));
                            grid.row(
                                    false,
                                    name,
                                    calls.count(),
                                    calls.failed(),
                                    calls.unfinished(),
                                    Quantity.micros(calls.hostMicros(50)),
                                    Quantity.micros(calls.hostMicros(99)),
                                    Quantity.micros(calls.deviceMicros(50)),
                                    Quantity.bytes(calls.nvlinkBytes()),
                                    Quantity.bytes(calls.rdmaBytes()));
                        });
        section.plot(
                "flight-time.svg",
                "Median host time of each operation",
                Charts.bars(
                        "Host time by operation",
                        "µs, median of the calls",
                        names,
                        medians,
                        OptionalDouble.empty()));
        section.tables().add(grid);
    }

    /** Rows are those who waited, columns those who kept them. */
    private static void addWaits(ReportPage page, FlightSummary flight) {
        long[][] waits = flight.waits();
        if (waits.length == 0) {
            page.section(
                    "Flight recording: who waited for whom",
                    "No waits were recorded: recordings may lack the events.");
            return;
        }
        double[][] millis = scaled(waits, 1e-6);
        long[] caused = flight.caused();
        Section section =
                page.section(
                        "Flight recording: who waited for whom",
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
                                        .orElse("Nobody waited."));
        section.plot(
                "flight-waits.svg",
                "Milliseconds that each rank waited for each rank",
                Charts.heatMap("Waits, ms", "rank that waited", "rank waited for", millis));
        Grid grid = new Grid("By rank").number("rank").number("waited").number("was waited for");
        for (int rank = 0; rank < millis.length; rank++) {
            grid.row(
                    false,
                    rank,
                    Quantity.micros(1e3 * Arrays.stream(millis[rank]).sum()),
                    Quantity.micros(caused[rank] / 1e3));
        }
        section.tables().add(grid);
    }

    private static void addTraffic(ReportPage page, String operation, long[][] bytes) {
        Section section =
                page.section(
                        "Flight recording: traffic matrix of " + operation,
                        "Megabytes over all recorded calls. What a rank keeps is on the diagonal.");
        section.plot(
                "flight-traffic-" + operation.replace(' ', '-') + ".svg",
                "Megabytes from each rank to each rank",
                Charts.heatMap(
                        "MB, " + operation, "from rank", "to rank", scaled(bytes, 1 / MEGA)));
    }

    private static double[][] scaled(long[][] values, double factor) {
        return Arrays.stream(values)
                .map(row -> Arrays.stream(row).mapToDouble(value -> value * factor).toArray())
                .toArray(double[][]::new);
    }
}
