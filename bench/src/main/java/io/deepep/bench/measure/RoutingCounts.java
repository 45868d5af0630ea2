package io.deepep.bench.measure;

import io.deepep.testkit.routing.Routing;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;

/**
 * Who sends how much to whom by the routing of a run.
 *
 * @param rows [R][R] tokens of the first rank that go to the second, however many of its experts
 *     they select
 * @param expertTokens [E] selections of each expert
 */
public record RoutingCounts(List<List<Integer>> rows, List<Integer> expertTokens) {
    /** Counts what {@code routing} says. */
    public static RoutingCounts of(Routing routing) {
        int[] expertTokens = new int[routing.numExperts()];
        for (int src = 0; src < routing.numRanks(); src++) {
            for (long[] row : routing.topkIdx(src)) {
                Arrays.stream(row).filter(e -> e >= 0).forEach(e -> expertTokens[(int) e]++);
            }
        }
        return new RoutingCounts(
                Arrays.stream(routing.tokensPerRank()).map(RoutingCounts::list).toList(),
                list(expertTokens));
    }

    /** Whether there is a row for each rank, of as many numbers. */
    boolean hasWhatReportsNeed() {
        return rows != null
                && expertTokens != null
                && !rows.isEmpty()
                && rows.stream().allMatch(row -> row != null && row.size() == rows.size())
                && Stream.concat(rows.stream().flatMap(List::stream), expertTokens.stream())
                        .allMatch(Objects::nonNull);
    }

    private static List<Integer> list(int[] counts) {
        return Arrays.stream(counts).boxed().toList();
    }
}
