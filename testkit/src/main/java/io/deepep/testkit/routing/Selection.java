package io.deepep.testkit.routing;

import java.util.Arrays;
import java.util.Comparator;
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
            double[] sorted = Arrays.copyOfRange(scores, group * size, (group + 1) * size);
            Arrays.sort(sorted);
            sums[group] = sorted[size - 1] + (size > 1 ? sorted[size - 2] : 0);
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
        return IntStream.range(0, scores.length)
                .boxed()
                .sorted(Comparator.comparingDouble((Integer i) -> -scores[i]))
                .limit(count)
                .mapToLong(Integer::longValue)
                .toArray();
    }
}
