package io.deepep.bench.report;

import io.deepep.bench.chart.Charts;
import io.deepep.bench.report.ReportPage.Grid;
import io.deepep.bench.report.ReportPage.Section;
import io.deepep.bench.text.Decimals;
import java.util.Arrays;
import java.util.Optional;

/** The section about how tokens spread over experts, and over the ranks that hold them. */
final class ExpertLoad {
    private ExpertLoad() {}

    static void add(
            ReportPage page, String title, String file, String text, long[] tokens, int numRanks) {
        Section section =
                page.section(
                        title,
                        text
                                + hottest(tokens)
                                        .map(who -> " The busiest is " + who + ".")
                                        .orElse(" No tokens."));
        section.plot(
                file,
                "Tokens of each expert",
                Charts.loads("Expert load", "expert", "tokens", tokens));
        if (tokens.length % numRanks != 0) {
            return;
        }
        Grid grid = new Grid("By rank").number("rank").number("experts").number("tokens");
        int perRank = tokens.length / numRanks;
        for (int rank = 0; rank < numRanks; rank++) {
            long sum = Arrays.stream(tokens, rank * perRank, (rank + 1) * perRank).sum();
            grid.row(false, rank, perRank, sum);
        }
        section.tables().add(grid);
    }

    /** Which expert is hot, and how much; empty without tokens. */
    static Optional<String> hottest(long[] tokens) {
        return Peak.of(tokens)
                .map(
                        peak ->
                                Decimals.of(
                                        "expert " + peak.index() + ", with %.2f times the mean",
                                        peak.share() * tokens.length));
    }
}
