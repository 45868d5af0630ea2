package io.deepep.djl.decoder;

import ai.djl.ndarray.NDArray;
import io.deepep.djl.Weights;
import io.deepep.djl.script.Operators;
import java.io.IOException;

/**
 * Rows scaled to a root mean square of 1, times a weight per channel.
 *
 * @param weight FLOAT32 [K]
 */
record RmsNorm(NDArray weight, double epsilon) {
    static RmsNorm load(Weights weights, String name, long size, double epsilon)
            throws IOException {
        return new RmsNorm(weights.vector(name + ".weight", size), epsilon);
    }

    /** Of FLOAT32 [...,K]. */
    NDArray apply(NDArray x) {
        return Operators.rmsNorm(x, weight, epsilon);
    }
}
