package io.deepep.djl.decoder;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.types.Shape;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/** Chooses the next token of every sequence. */
@FunctionalInterface
public interface Sampler {
    /** Chooses tokens INT64 [N] from logits FLOAT32 [N,V], N at least 1. */
    NDArray next(NDArray logits);

    /** The likeliest one. Nothing waits for the GPU. */
    static Sampler greedy() {
        return logits -> logits.argMax(-1);
    }

    /**
     * One of the likeliest that together have the probability {@code p}.
     *
     * @param temperature divides the logits; above 0
     * @param seed the same seed chooses the same tokens for a row, whatever the other rows
     */
    static Sampler topP(double temperature, double p, long seed) {
        if (!(temperature > 0) || !(p > 0 && p <= 1)) {
            throw new IllegalArgumentException(
                    "temperature=" + temperature + " must be above 0, and p=" + p + " in (0, 1]");
        }
        // Not java.util.Random, whose first numbers are nearly the same for all small seeds.
        SplittableRandom random = new SplittableRandom(seed);
        List<SplittableRandom> ofRows = new ArrayList<>();
        return logits -> {
            int vocabulary = (int) logits.getShape().get(1);
            long[] chosen = new long[(int) logits.getShape().get(0)];
            // From the largest one, and not by 0 in FLOAT32, or a low temperature would give no
            // numbers.
            NDArray fromBest = logits.sub(logits.max(new int[] {-1}, true));
            NDArray probabilities =
                    fromBest.div(Math.max(temperature, Float.MIN_NORMAL)).softmax(-1);
            NDArray order = probabilities.argSort(-1, false);
            float[] sorted = probabilities.gather(order, 1).toFloatArray();
            long[] tokens = order.toLongArray();
            for (int i = 0; i < chosen.length; i++) {
                if (i == ofRows.size()) {
                    ofRows.add(random.split());
                }
                int first = i * vocabulary;
                double u = ofRows.get(i).nextDouble();
                chosen[i] = tokens[choose(sorted, first, first + vocabulary, p, u)];
            }
            return logits.getManager().create(chosen, new Shape(chosen.length));
        };
    }

    /** Index into {@code probabilities}, of which those of a row fall from {@code first} on. */
    private static int choose(float[] probabilities, int first, int end, double p, double u) {
        double kept = 0;
        int last = first;
        while (last < end && kept < p) {
            kept += probabilities[last++];
        }
        double left = u * kept;
        for (int i = first; i < last - 1; i++) {
            left -= probabilities[i];
            if (left < 0) {
                return i;
            }
        }
        return last - 1;
    }
}
