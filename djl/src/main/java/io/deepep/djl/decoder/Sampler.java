package io.deepep.djl.decoder;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.types.Shape;
import java.util.Comparator;
import java.util.Random;
import java.util.stream.IntStream;

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
     * @param seed the same seed chooses the same tokens
     */
    static Sampler topP(double temperature, double p, long seed) {
        if (!(temperature > 0) || !(p > 0 && p <= 1)) {
            throw new IllegalArgumentException(
                    "temperature=" + temperature + " must be above 0, and p=" + p + " in (0, 1]");
        }
        Random random = new Random(seed);
        return logits -> {
            long[] chosen = new long[(int) logits.getShape().get(0)];
            // From the largest one, and not by 0 in FLOAT32, or a low temperature would give no
            // numbers.
            NDArray fromBest = logits.sub(logits.max(new int[] {-1}, true));
            NDArray probabilities =
                    fromBest.div(Math.max(temperature, Float.MIN_NORMAL)).softmax(-1);
            for (int i = 0; i < chosen.length; i++) {
                chosen[i] = choose(probabilities.get(i).toFloatArray(), p, random);
            }
            return logits.getManager().create(chosen, new Shape(chosen.length));
        };
    }

    private static int choose(float[] probabilities, double p, Random random) {
        int[] order =
                IntStream.range(0, probabilities.length)
                        .boxed()
                        .sorted(Comparator.comparingDouble(i -> -probabilities[i]))
                        .mapToInt(Integer::intValue)
                        .toArray();
        double kept = 0;
        int numKept = 0;
        while (numKept < order.length && kept < p) {
            kept += probabilities[order[numKept++]];
        }
        double left = random.nextDouble() * kept;
        for (int i = 0; i < numKept - 1; i++) {
            left -= probabilities[order[i]];
            if (left < 0) {
                return order[i];
            }
        }
        return order[numKept - 1];
    }
}
