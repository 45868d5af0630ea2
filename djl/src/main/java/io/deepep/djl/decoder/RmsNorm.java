package io.deepep.djl.decoder;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import io.deepep.djl.Weights;
import java.io.IOException;

/**
 * Rows scaled to a root mean square of 1, times a weight per channel.
 *
 * @param weight FLOAT32 [K]
 * @param epsilon FLOAT32, a scalar on the device: one from the host would be copied in every call
 */
record RmsNorm(NDArray weight, NDArray epsilon) {
    static RmsNorm load(Weights weights, String name, long size, double epsilon)
            throws IOException {
        NDManager manager = weights.manager();
        return new RmsNorm(weights.vector(name + ".weight", size), manager.create((float) epsilon));
    }

    /** Of FLOAT32 [...,K]. */
    NDArray apply(NDArray x) {
        NDArray meanSquare = x.square().mean(new int[] {-1}, true);
        return x.div(meanSquare.add(epsilon).sqrt()).mul(weight);
    }
}
