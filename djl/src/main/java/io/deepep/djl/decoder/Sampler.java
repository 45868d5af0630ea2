package io.deepep.djl.decoder;

import ai.djl.ndarray.NDArray;

/**
 * Chooses the next token of every sequence. Those that this interface makes leave tokens on the
 * device: nothing waits for the GPU. A decoder calls them for the rows of all requests together;
 * each request has the tokens that it would get alone.
 */
@FunctionalInterface
public interface Sampler {
    /** Chooses tokens INT64 [N] from logits FLOAT32 [N,V], N at least 1. */
    NDArray next(NDArray logits);

    /** The likeliest one. */
    static Sampler greedy() {
        return Greedy.SAMPLER;
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
        return new TopP(temperature, p, seed);
    }
}
