package io.deepep.planner;

import static org.assertj.core.api.Assertions.assertThat;

import io.deepep.EpTopology;
import io.deepep.testkit.oracle.Traffic;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.Arrays;
import java.util.stream.IntStream;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.EdgeCasesMode;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;

/**
 * Counted rows against the oracle's traffic and against a count by definition. Ranges are so small
 * that chance meets their edges.
 */
final class RowCounterProperties {
    record Case(EpTopology topology, Routing routing) {
        int numRanks() {
            return topology.numRanks();
        }

        int node(int rank) {
            return topology.withRank(rank).rdmaRank();
        }

        Traffic sum(java.util.function.IntFunction<Traffic> ofRank) {
            return IntStream.range(0, numRanks())
                    .mapToObj(ofRank)
                    .reduce(new Traffic(0, 0), Traffic::plus);
        }
    }

    @Provide
    Arbitrary<Case> cases() {
        Arbitrary<Integer> nodes = Arbitraries.integers().between(1, 4);
        Arbitrary<Integer> ranks = Arbitraries.integers().between(1, 5);
        Arbitrary<Integer> localExperts = Arbitraries.integers().between(1, 4);
        Arbitrary<Integer> tokens = Arbitraries.integers().between(0, 12);
        Arbitrary<Integer> topk = Arbitraries.integers().between(1, 6);
        Arbitrary<Boolean> untidy = Arbitraries.of(true, false);
        Arbitrary<Long> seeds = Arbitraries.longs();
        return Combinators.combine(nodes, ranks, localExperts, tokens, topk, untidy, seeds)
                .as(
                        (n, r, e, t, k, u, seed) -> {
                            RoutingSpec recipe =
                                    RoutingSpec.of(n * r, t, n * r * e, Math.min(k, n * r * e))
                                            .withMaskedShare(u ? 0.3 : 0)
                                            .withDuplicateShare(u ? 0.3 : 0)
                                            .withVaryingTokens(u)
                                            .withSeed(seed);
                            return new Case(new EpTopology(0, n * r, r), recipe.generate());
                        });
    }

    private static RowCounter count(Case each, RowRule rule) {
        RowCounter counter = new RowCounter(rule, each.topology(), each.routing().numExperts());
        TokenSource source = TokenSource.recorded(each.routing());
        for (int rank = 0; rank < each.numRanks(); rank++) {
            int src = rank;
            source.selections().forEach(src, experts -> counter.add(src, experts));
        }
        return counter;
    }

    private static long sum(long[] counts) {
        return Arrays.stream(counts).sum();
    }

    @Property(edgeCases = EdgeCasesMode.NONE)
    void normalRowsAreTheOraclesTraffic(@ForAll("cases") Case each) {
        LinkRows rows = count(each, RowRule.NODE_THEN_RANK).rows;
        Traffic expected = each.sum(rank -> Traffic.normal(each.routing(), each.topology(), rank));
        assertThat(sum(rows.nvlinkOut)).isEqualTo(expected.nvlinkRows());
        assertThat(sum(rows.rdmaOut)).isEqualTo(expected.rdmaRows());
        for (int rank = 0; rank < each.numRanks(); rank++) {
            // Over RDMA a rank sends its own tokens only.
            assertThat(rows.rdmaOut[rank])
                    .isEqualTo(Traffic.normal(each.routing(), each.topology(), rank).rdmaRows());
        }
    }

    @Property(edgeCases = EdgeCasesMode.NONE)
    void lowLatencyRowsAreTheOraclesTraffic(@ForAll("cases") Case each) {
        LinkRows rows = count(each, RowRule.ONCE_PER_RANK).rows;
        for (int rank = 0; rank < each.numRanks(); rank++) {
            Traffic expected = Traffic.lowLatency(each.routing(), each.topology(), rank);
            assertThat(new Traffic(rows.nvlinkOut[rank], rows.rdmaOut[rank])).isEqualTo(expected);
        }
    }

    @Property(edgeCases = EdgeCasesMode.NONE)
    void everySelectionElsewhereIsARow(@ForAll("cases") Case each) {
        LinkRows rows = count(each, RowRule.ONCE_PER_SELECTION).rows;
        long[] nvlinkIn = new long[each.numRanks()];
        long[] rdmaIn = new long[each.numRanks()];
        for (int src = 0; src < each.numRanks(); src++) {
            for (long[] experts : each.routing().topkIdx(src)) {
                for (long expert : experts) {
                    int dest = each.routing().ownerOf(expert);
                    if (dest >= 0 && dest != src) {
                        (each.node(dest) == each.node(src) ? nvlinkIn : rdmaIn)[dest]++;
                    }
                }
            }
        }
        assertThat(rows.nvlinkIn).isEqualTo(nvlinkIn);
        assertThat(rows.rdmaIn).isEqualTo(rdmaIn);
    }

    @Property(edgeCases = EdgeCasesMode.NONE)
    void whatIsSentIsReceived(@ForAll("cases") Case each, @ForAll RowRule rule) {
        LinkRows rows = count(each, rule).rows;
        assertThat(sum(rows.nvlinkOut)).isEqualTo(sum(rows.nvlinkIn));
        assertThat(sum(rows.rdmaOut)).isEqualTo(sum(rows.rdmaIn));
        if (!each.topology().isInternode()) {
            assertThat(sum(rows.rdmaOut)).isZero();
        }
    }

    @Property(edgeCases = EdgeCasesMode.NONE)
    void receivedRowsAreTheTokensThatGoThere(@ForAll("cases") Case each) {
        RowCounter counter = count(each, RowRule.NODE_THEN_RANK);
        for (int dest = 0; dest < each.numRanks(); dest++) {
            long expected = 0;
            for (int src = 0; src < each.numRanks(); src++) {
                for (int token = 0; token < each.routing().numTokens(src); token++) {
                    expected += each.routing().goesTo(src, token, dest) ? 1 : 0;
                }
            }
            assertThat(counter.received[dest]).isEqualTo(expected);
        }
    }
}
