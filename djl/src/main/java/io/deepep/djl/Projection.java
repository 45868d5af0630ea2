package io.deepep.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.types.DataType;
import io.deepep.djl.script.Operators;

/**
 * A linear layer whose weight may have any floating-point type, including BF16. It multiplies in
 * that type and returns FLOAT32.
 *
 * @param weight [N,K]
 * @param bias [N] in the type of {@code weight}, or null
 */
public record Projection(NDArray weight, NDArray bias) {
    /**
     * Multiplies {@code x} [...,K] by the weight; returns FLOAT32 [...,N], attached to the manager
     * of {@code x}.
     */
    public NDArray apply(NDArray x) {
        return multiply(x).toType(DataType.FLOAT32, false);
    }

    /** The same, but the result has the type of the weight. */
    public NDArray multiply(NDArray x) {
        return Operators.linear(x, weight, bias);
    }
}
