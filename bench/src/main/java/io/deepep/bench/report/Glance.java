package io.deepep.bench.report;

import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.report.ReportPage.Grid;
import io.deepep.bench.text.Decimals;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/** The first section: who is slow, which expert is hot, how close to the limit. */
final class Glance {
    private Glance() {}

    static void add(ReportPage page, List<BenchRun> runs, FlightSummary flight) {
        Grid grid = new Grid("Answers").text("question").text("answer").text("from");
        runs.forEach(run -> addLimit(grid, run));
        flight.experts().forEach((mode, tokens) -> addHottest(grid, tokens, mode + " recording"));
        for (BenchRun run : runs) {
            if (run.routing() != null) {
                addHottest(
                        grid,
                        run.routing().expertTokens().stream()
                                .mapToLong(Integer::longValue)
                                .toArray(),
                        run.name());
            }
        }
        addSlowest(grid, flight.waits());
        if (!grid.rows.isEmpty()) {
            page.section("At a glance", "The sections below show where each answer comes from.")
                    .tables()
                    .add(grid);
        }
    }

    private static void addLimit(Grid grid, BenchRun run) {
        Optional<OperationRecord> best =
                run.fastest().stream()
                        .filter(each -> !Double.isNaN(BenchRun.share(each)))
                        .max(Comparator.comparingDouble(BenchRun::share));
        Optional<OperationRecord> worst =
                run.fastest().stream()
                        .filter(each -> !Double.isNaN(BenchRun.share(each)))
                        .min(Comparator.comparingDouble(BenchRun::share));
        if (best.isPresent() && worst.isPresent()) {
            grid.row(
                    false,
                    "How close to the limit?",
                    share(worst.get()) + " to " + share(best.get()),
                    run.name());
        }
    }

    private static String share(OperationRecord each) {
        return Decimals.of("%.0f %%", 100 * BenchRun.share(each))
                + " ("
                + OperationNames.of(each)
                + ")";
    }

    private static void addHottest(Grid grid, long[] tokens, String from) {
        ExpertLoad.hottest(tokens)
                .ifPresent(who -> grid.row(false, "Which expert is hot?", who, from));
    }

    private static void addSlowest(Grid grid, long[][] waits) {
        long[] caused = new long[waits.length];
        for (long[] row : waits) {
            for (int peer = 0; peer < row.length; peer++) {
                caused[peer] += row[peer];
            }
        }
        long all = Arrays.stream(caused).sum();
        int most = 0;
        for (int peer = 0; peer < caused.length; peer++) {
            most = caused[peer] > caused[most] ? peer : most;
        }
        if (all > 0) {
            grid.row(
                    false,
                    "Who is slow?",
                    Decimals.of(
                            "rank " + most + ", which caused %.0f %% of all waits",
                            100.0 * caused[most] / all),
                    "recording");
        }
    }
}
