package io.deepep.bench.report;

import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.report.ReportPage.Grid;
import io.deepep.bench.text.Decimals;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;

/** The first section: who is slow, which expert is hot, how close to the limit. */
final class Glance {
    private Glance() {}

    static void add(ReportPage page, List<BenchRun> runs, FlightSummary flight) {
        Grid grid = new Grid("Answers").text("question").text("answer").text("from");
        runs.forEach(run -> addLimit(grid, run));
        flight.experts().forEach((mode, tokens) -> addHottest(grid, tokens, mode + " recording"));
        for (BenchRun run : runs) {
            if (run.routed() != null) {
                addHottest(
                        grid,
                        run.routed().routing().expertTokens().stream()
                                .mapToLong(Integer::longValue)
                                .toArray(),
                        run.name());
            }
        }
        addSlowest(grid, flight);
        if (!grid.rows.isEmpty()) {
            page.section("At a glance", "The sections below show where each answer comes from.")
                    .tables()
                    .add(grid);
        }
    }

    private static void addLimit(Grid grid, BenchRun run) {
        List<OperationRecord> best = run.fastestWithShare();
        if (!best.isEmpty()) {
            Comparator<OperationRecord> byShare = Comparator.comparingDouble(BenchRun::share);
            grid.row(
                    false,
                    "How close to the limit?",
                    share(Collections.min(best, byShare))
                            + " to "
                            + share(Collections.max(best, byShare)),
                    run.name());
        }
    }

    private static String share(OperationRecord each) {
        return Decimals.of("%.0f %%", 100 * BenchRun.share(each))
                + " (%s)".formatted(OperationNames.of(each));
    }

    private static void addHottest(Grid grid, long[] tokens, String from) {
        ExpertLoad.hottest(tokens)
                .ifPresent(who -> grid.row(false, "Which expert is hot?", who, from));
    }

    private static void addSlowest(Grid grid, FlightSummary flight) {
        Peak.of(flight.caused())
                .ifPresent(
                        peak ->
                                grid.row(
                                        false,
                                        "Who is slow?",
                                        Decimals.of(
                                                "rank "
                                                        + peak.index()
                                                        + ", which caused %.0f %% of all waits",
                                                100 * peak.share()),
                                        "recording"));
    }
}
