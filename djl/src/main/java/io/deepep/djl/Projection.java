package io.deepep.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.types.DataType;
import ai.djl.nn.core.Linear;

/**
 * A linear layer over a weight of any floating type, BF16 too: it multiplies in the weight's type
 * and gives FLOAT32.
 *
 * @param weight [N,K]
 * @param bias [N] in the type of {@code weight}, or null
 */
public record Projection(NDArray weight, NDArray bias) {
    /** FLOAT32 [...,N] of x [...,K], attached to the manager of {@code x}. */
    public NDArray apply(NDArray x) {
        NDArray typed = TorchTensors.toTypeOf(weight, x);
        NDArray y = Linear.linear(typed, weight, bias).singletonOrThrow();
        return y.toType(DataType.FLOAT32, false);
    }
}
