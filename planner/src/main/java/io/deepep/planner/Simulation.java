package io.deepep.planner;

import io.deepep.EpTopology;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/**
 * What a routing makes each rank send and receive.
 *
 * @param dispatch rows of a dispatch
 * @param combine rows of the combine after it
 * @param tokens tokens of a rank
 * @param meanReceived rows that a rank holds after the dispatch on average, its own tokens'
 *     included
 * @param mostReceived rows that the rank with most holds
 * @param nodesReached nodes that a token reaches on average, its own included
 * @param fraction of the tokens that was simulated
 * @param sampledTokens of each rank
 */
record Simulation(
        LinkRows dispatch,
        LinkRows combine,
        LinkLoad tokens,
        double meanReceived,
        int mostReceived,
        double nodesReached,
        double fraction,
        int sampledTokens) {
    /**
     * Simulates one mode. A combine takes the ways of the dispatch backwards, but in low-latency
     * mode every selection's result is sent by itself.
     *
     * @param lowLatencyRule how tokens go out in low-latency mode
     */
    static Simulation of(
            Mode mode, RowRule lowLatencyRule, TokenSource source, EpTopology topology) {
        List<RowCounter> counters =
                mode == Mode.NORMAL
                        ? count(source, topology, RowRule.NODE_THEN_RANK)
                        : count(source, topology, lowLatencyRule, RowRule.ONCE_PER_SELECTION);
        RowCounter counter = counters.getFirst();
        double fraction = (double) source.sampledTokens() / source.maxTokens();
        return new Simulation(
                counter.rows,
                counters.getLast().rows.reversed(),
                new LinkLoad(
                        counter.numTokens() / fraction / topology.numRanks(), source.maxTokens()),
                Arrays.stream(counter.received).average().orElseThrow() / fraction,
                (int) Math.round(LinkLoad.max(counter.received, fraction)),
                counter.nodesReached(),
                fraction,
                source.sampledTokens());
    }

    /** Counts by several rules at once. */
    private static List<RowCounter> count(
            TokenSource source, EpTopology topology, RowRule... rules) {
        int workers = Math.min(topology.numRanks(), Runtime.getRuntime().availableProcessors());
        return IntStream.range(0, workers)
                .parallel()
                .mapToObj(
                        worker -> {
                            List<RowCounter> counters = counters(source, topology, rules);
                            for (int rank = worker; rank < topology.numRanks(); rank += workers) {
                                int src = rank;
                                source.selections()
                                        .forEach(
                                                src,
                                                experts ->
                                                        counters.forEach(
                                                                each -> each.add(src, experts)));
                            }
                            return counters;
                        })
                .reduce(Simulation::sum)
                .orElseThrow();
    }

    private static List<RowCounter> counters(
            TokenSource source, EpTopology topology, RowRule... rules) {
        return Arrays.stream(rules)
                .map(rule -> new RowCounter(rule, topology, source.numExperts()))
                .toList();
    }

    private static List<RowCounter> sum(List<RowCounter> to, List<RowCounter> from) {
        for (int i = 0; i < to.size(); i++) {
            to.get(i).addAll(from.get(i));
        }
        return to;
    }

    /** The rows of one operation. */
    LinkRows rows(Op op) {
        return op == Op.DISPATCH ? dispatch : combine;
    }
}
