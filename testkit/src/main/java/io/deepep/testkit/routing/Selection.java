package io.deepep.testkit.routing;

import java.util.random.RandomGenerator;
import java.util.stream.IntStream;

/** Arithmetic of the gates: scores in, experts out. */
final class Selection {
    private Selection() {}

    static double[] scores(RandomGenerator random, int numExperts) {
        return IntStream.range(0, numExperts).mapToDouble(e -> random.nextDouble()).toArray();
    }

    static double[] sigmoid(RandomGenerator random, int numExperts) {
        return IntStream.range(0, numExperts)
                .mapToDouble(e -> 1 / (1 + Math.exp(-random.nextGaussian())))
                .toArray();
    }

    /** A correction that is the same for every token: it prefers some experts a little. */
    static void addBias(double[] scores) {
        for (int expert = 0; expert < scores.length; expert++) {
            scores[expert] += 0.1 * Math.sin(expert);
        }
    }

    /** Rules out, with minus infinity, what is not in the groups with the best sums of two. */
    static void keepBestGroups(double[] scores, int numGroups, int numTopkGroups) {
        int size = scores.length / numGroups;
        double[] sums = new double[numGroups];
        for (int group = 0; group < numGroups; group++) {
            double first = Double.NEGATIVE_INFINITY;
            double second = Double.NEGATIVE_INFINITY;
            for (int expert = group * size; expert < (group + 1) * size; expert++) {
                second = Math.max(second, Math.min(first, scores[expert]));
                first = Math.max(first, scores[expert]);
            }
            sums[group] = first + (size > 1 ? second : 0);
        }
        boolean[] kept = new boolean[numGroups];
        for (long group : best(sums, numTopkGroups)) {
            kept[(int) group] = true;
        }
        for (int expert = 0; expert < scores.length; expert++) {
            if (!kept[expert / size]) {
                scores[expert] = Double.NEGATIVE_INFINITY;
            }
        }
    }

    /** The indices of the {@code count} largest scores, best first; of equals the lower index. */
    static long[] best(double[] scores, int count) {
        long[] best = new long[Math.min(count, scores.length)];
        int held = 0;
        for (int i = 0; i < scores.length; i++) {
            if (held == best.length && (held == 0 || scores[i] <= scores[(int) best[held - 1]])) {
                continue;
            }
            // Moves down what is worse; of equals, what came before stays in front.
            int at = held < best.length ? held++ : held - 1;
            while (at > 0 && scores[i] > scores[(int) best[at - 1]]) {
                best[at] = best[at - 1];
                at--;
            }
            best[at] = i;
        }
        return best;
    }
}
