package io.deepep.bench.report;

import io.deepep.bench.chart.Charts;
import io.deepep.bench.measure.RoutingCounts;
import io.deepep.bench.report.ReportPage.Section;
import io.deepep.bench.text.Decimals;
import io.deepep.bench.text.TextTable;
import java.util.Arrays;
import java.util.Optional;
import java.util.stream.IntStream;

/** The section about how tokens spread over experts, and over the ranks that hold them. */
final class ExpertLoad {
    private ExpertLoad() {}

    /**
     * Adds the section.
     *
     * @param numRanks 0 if it is not known, for no table of ranks
     */
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
        if (numRanks == 0 || tokens.length % numRanks != 0) {
            return;
        }
        int perRank = tokens.length / numRanks;
        long[] sums = new long[numRanks];
        Arrays.setAll(
                sums, rank -> Arrays.stream(tokens, rank * perRank, (rank + 1) * perRank).sum());
        section.table(
                "By rank",
                IntStream.range(0, numRanks).boxed().toList(),
                new TextTable<Integer>()
                        .right("rank", rank -> rank)
                        .right("experts", rank -> perRank)
                        .right("tokens", rank -> sums[rank]));
    }

    /** The tokens of each expert in a run. */
    static long[] tokens(RoutingCounts counts) {
        return counts.expertTokens().stream().mapToLong(Integer::longValue).toArray();
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
