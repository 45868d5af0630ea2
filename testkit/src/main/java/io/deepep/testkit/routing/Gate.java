package io.deepep.testkit.routing;

import java.util.Arrays;
import java.util.random.RandomGenerator;

/** How tokens come to their experts. */
public sealed interface Gate {
    /**
     * Chooses the experts of one token.
     *
     * @return {@code numTopk} entries, global experts or -1
     */
    long[] select(RandomGenerator random, int token, int numExperts, int numTopk);

    /** Says why these numbers do not go together, or null. */
    default String objection(int numExperts, int numTopk) {
        return numTopk > numExperts
                ? "numTopk=" + numTopk + " exceeds numExperts=" + numExperts
                : null;
    }

    /** Distinct experts, all equally likely. */
    record Uniform() implements Gate {
        @Override
        public long[] select(RandomGenerator random, int token, int numExperts, int numTopk) {
            return Selection.best(Selection.scores(random, numExperts), numTopk);
        }
    }

    /**
     * DeepSeek's group-limited gate: sigmoid scores, a correction bias that only counts for the
     * choice, the groups with the largest sums of their two best experts, and in these the best
     * experts.
     *
     * @param numGroups groups of consecutive experts
     * @param numTopkGroups groups that a token may use
     * @param biased whether experts have a correction bias
     */
    record GroupLimited(int numGroups, int numTopkGroups, boolean biased) implements Gate {
        @Override
        public String objection(int numExperts, int numTopk) {
            if (numGroups < 1 || numExperts % numGroups != 0) {
                return "numExperts=" + numExperts + " is not a multiple of numGroups=" + numGroups;
            }
            if (numTopkGroups < 1 || numTopkGroups > numGroups) {
                return "numTopkGroups=%s is not in [1, numGroups=%s]"
                        .formatted(numTopkGroups, numGroups);
            }
            int reachable = numExperts / numGroups * numTopkGroups;
            return numTopk > reachable
                    ? "numTopk=%s exceeds the %s experts of numTopkGroups=%s of numGroups=%s"
                            .formatted(numTopk, reachable, numTopkGroups, numGroups)
                    : null;
        }

        @Override
        public long[] select(RandomGenerator random, int token, int numExperts, int numTopk) {
            double[] scores = Selection.sigmoid(random, numExperts);
            if (biased) {
                Selection.addBias(scores);
            }
            Selection.keepBestGroups(scores, numGroups, numTopkGroups);
            return Selection.best(scores, numTopk);
        }
    }

    /**
     * Distinct experts, of which some are far more popular: the i-th with a chance proportional to
     * {@code 1 / (i + 1)^exponent}.
     *
     * @param exponent 0 is uniform, 1 is strongly skewed
     */
    record Zipf(double exponent) implements Gate {
        @Override
        public long[] select(RandomGenerator random, int token, int numExperts, int numTopk) {
            double[] keys = new double[numExperts];
            for (int expert = 0; expert < numExperts; expert++) {
                // Exponential clocks: the first numTopk to ring are a weighted draw without
                // replacement.
                double rate = Math.pow(expert + 1.0, -exponent);
                keys[expert] = Math.log(1 - random.nextDouble()) / rate;
            }
            return Selection.best(keys, numTopk);
        }
    }

    /**
     * Every token selects the same expert once, and nothing else.
     *
     * @param expert the one
     */
    record AllToOne(int expert) implements Gate {
        @Override
        public String objection(int numExperts, int numTopk) {
            return expert < 0 || expert >= numExperts
                    ? "expert=" + expert + " is not in [0, numExperts=" + numExperts + ")"
                    : null;
        }

        @Override
        public long[] select(RandomGenerator random, int token, int numExperts, int numTopk) {
            long[] chosen = new long[numTopk];
            Arrays.fill(chosen, -1);
            chosen[token % numTopk] = expert;
            return chosen;
        }
    }
}
