package io.deepep.planner;

import io.deepep.testkit.routing.Gate;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.SplittableRandom;
import java.util.function.Consumer;

/** The selections of every rank's tokens: drawn at random, or recorded. */
public sealed interface TokenSource {
    /** Number of ranks. */
    int numRanks();

    /** Number of experts of all ranks. */
    int numExperts();

    /** Number of tokens of the rank that has most. */
    int maxTokens();

    /** Number of tokens of each rank that are simulated, at most {@link #maxTokens}. */
    int sampledTokens();

    /**
     * Passes the selections of each simulated token of {@code rank} to {@code token}: [K] global
     * experts, or -1.
     */
    void forEach(int rank, Consumer<long[]> token);

    /** The same number of tokens on every rank, drawn at random by a gate. */
    final class Drawn implements TokenSource {
        /**
         * Experts looked at by all tokens together; where it would be more, a sample of each rank's
         * tokens has to do. A second or two on one processor.
         */
        private static final long BUDGET = 1L << 26;

        private final Gate gate;
        private final Shape shape;
        private final int sampledTokens;
        private final long[] seeds;

        /**
         * Creates a source of tokens drawn by {@code gate}.
         *
         * @throws IllegalArgumentException if the gate cannot choose among that many experts
         */
        public Drawn(Gate gate, Shape shape, int numRanks, long seed) {
            this(gate, shape, numRanks, seed, affordable(shape, numRanks));
        }

        Drawn(Gate gate, Shape shape, int numRanks, long seed, int sampledTokens) {
            // Validates the numbers.
            RoutingSpec.of(numRanks, shape.numTokens(), shape.numExperts(), shape.numTopk())
                    .withGate(gate);
            this.gate = gate;
            this.shape = shape;
            this.sampledTokens = Math.min(shape.numTokens(), sampledTokens);
            // One generator per rank, so that ranks can be simulated in any order.
            this.seeds = new SplittableRandom(seed).longs(numRanks).toArray();
        }

        private static int affordable(Shape shape, int numRanks) {
            long looks = (long) shape.numExperts() * numRanks;
            return (int) Math.max(1, BUDGET / Math.max(1, looks)); // checked later
        }

        @Override
        public int numRanks() {
            return seeds.length;
        }

        @Override
        public int numExperts() {
            return shape.numExperts();
        }

        @Override
        public int maxTokens() {
            return shape.numTokens();
        }

        @Override
        public int sampledTokens() {
            return sampledTokens;
        }

        @Override
        public void forEach(int rank, Consumer<long[]> token) {
            SplittableRandom random = new SplittableRandom(seeds[rank]);
            for (int i = 0; i < sampledTokens; i++) {
                token.accept(gate.select(random, i, shape.numExperts(), shape.numTopk()));
            }
        }
    }

    /** All tokens of a recorded routing. */
    record Recorded(Routing routing) implements TokenSource {
        @Override
        public int numRanks() {
            return routing.numRanks();
        }

        @Override
        public int numExperts() {
            return routing.numExperts();
        }

        @Override
        public int maxTokens() {
            return routing.maxTokens();
        }

        @Override
        public int sampledTokens() {
            return routing.maxTokens();
        }

        @Override
        public void forEach(int rank, Consumer<long[]> token) {
            for (long[] experts : routing.topkIdx(rank)) {
                token.accept(experts);
            }
        }
    }
}
