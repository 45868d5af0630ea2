package io.deepep.djl.decoder;

import static io.deepep.djl.TorchTensors.scalar;

import ai.djl.ndarray.NDArray;
import io.deepep.djl.TorchTensors;
import io.deepep.djl.Weights;
import java.io.IOException;

/**
 * Rows scaled to a root mean square of 1, times a weight per channel.
 *
 * @param weight FLOAT32 [K]
 * @param epsilon {@link TorchTensors#scalar}
 */
record RmsNorm(NDArray weight, NDArray epsilon) {
    static RmsNorm load(Weights weights, String name, long size, double epsilon)
            throws IOException {
        return new RmsNorm(weights.vector(name + ".weight", size), scalar((float) epsilon));
    }

    /** Of FLOAT32 [...,K]. */
    NDArray apply(NDArray x) {
        NDArray meanSquare = x.square().mean(new int[] {-1}, true);
        return x.div(meanSquare.add(epsilon).sqrt()).mul(weight);
    }
}
