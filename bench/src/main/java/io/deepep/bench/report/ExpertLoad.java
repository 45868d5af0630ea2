package io.deepep.bench.report;

import io.deepep.bench.report.ReportPage.Grid;
import io.deepep.bench.report.ReportPage.Plot;
import io.deepep.bench.report.ReportPage.Section;
import io.deepep.bench.text.Decimals;
import java.util.Arrays;

/** The section about how tokens spread over experts, and over the ranks that hold them. */
final class ExpertLoad {
    private ExpertLoad() {}

    static void add(
            ReportPage page, String title, String file, String text, long[] tokens, int numRanks) {
        Section section = page.section(title, text + " " + imbalance("expert", tokens));
        section.plots.add(
                new Plot(
                        file,
                        "Tokens of each expert",
                        Charts.steps("Expert load", "expert", "tokens", tokens)));
        if (tokens.length % numRanks != 0) {
            return;
        }
        Grid grid = new Grid("By rank").number("rank").number("experts").number("tokens");
        int perRank = tokens.length / numRanks;
        for (int rank = 0; rank < numRanks; rank++) {
            long sum = Arrays.stream(tokens, rank * perRank, (rank + 1) * perRank).sum();
            grid.row(false, rank, perRank, sum);
        }
        section.tables.add(grid);
    }

    private static String imbalance(String what, long[] tokens) {
        double mean = Arrays.stream(tokens).average().orElse(0);
        long most = Arrays.stream(tokens).max().orElse(0);
        return mean == 0
                ? "No tokens."
                : Decimals.of("The busiest " + what + " has %.2f times the mean.", most / mean);
    }
}
