package io.deepep.djl.decoder;

import ai.djl.ndarray.NDArray;

/** The likeliest token. */
enum Greedy implements Sampler {
    SAMPLER;

    @Override
    public NDArray next(NDArray logits) {
        return logits.argMax(-1);
    }
}
