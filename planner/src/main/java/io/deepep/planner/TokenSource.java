package io.deepep.planner;

import io.deepep.testkit.routing.Gate;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.function.Consumer;

/**
 * The selections of every rank's tokens: drawn at random, or recorded.
 *
 * @param numRanks number of ranks
 * @param numExperts number of experts of all ranks
 * @param maxTokens number of tokens of the rank that has most
 * @param sampledTokens number of tokens of each rank that are simulated, at most {@code maxTokens}
 * @param selections what the simulated tokens select
 */
public record TokenSource(
        int numRanks, int numExperts, int maxTokens, int sampledTokens, Selections selections) {
    /**
     * Experts looked at by all tokens together; where it would be more, a sample of each rank's
     * tokens has to do. A second or two on one processor.
     */
    private static final long BUDGET = 1L << 26;

    /** What tokens select. */
    @FunctionalInterface
    public interface Selections {
        /**
         * Passes the selections of each token of {@code rank} to {@code token}: [K] global experts,
         * or -1.
         */
        void forEach(int rank, Consumer<long[]> token);
    }

    /**
     * The same number of tokens on every rank, drawn at random by {@code gate}.
     *
     * @throws IllegalArgumentException if the gate cannot choose among that many experts
     */
    public static TokenSource drawn(Gate gate, Shape shape, int numRanks, long seed) {
        long looks = (long) shape.numExperts() * numRanks;
        int affordable = (int) Math.max(1, BUDGET / Math.max(1, looks)); // checked later
        return drawn(gate, shape, numRanks, seed, affordable);
    }

    static TokenSource drawn(Gate gate, Shape shape, int numRanks, long seed, int sampledTokens) {
        // Validates the numbers.
        RoutingSpec.of(numRanks, shape.numTokens(), shape.numExperts(), shape.numTopk())
                .withGate(gate);
        int sampled = Math.min(shape.numTokens(), sampledTokens);
        // One generator per rank, so that ranks can be simulated in any order.
        long[] seeds = new SplittableRandom(seed).longs(numRanks).toArray();
        return new TokenSource(
                numRanks,
                shape.numExperts(),
                shape.numTokens(),
                sampled,
                (rank, token) -> {
                    SplittableRandom random = new SplittableRandom(seeds[rank]);
                    for (int i = 0; i < sampled; i++) {
                        token.accept(gate.select(random, i, shape.numExperts(), shape.numTopk()));
                    }
                });
    }

    /** All tokens of a recorded routing. */
    public static TokenSource recorded(Routing routing) {
        return new TokenSource(
                routing.numRanks(),
                routing.numExperts(),
                routing.maxTokens(),
                routing.maxTokens(),
                (rank, token) -> Arrays.stream(routing.topkIdx(rank)).forEach(token));
    }
}
