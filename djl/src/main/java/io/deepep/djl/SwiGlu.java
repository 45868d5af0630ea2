package io.deepep.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.nn.Activation;
import java.io.IOException;

/** {@code down(silu(gate(x)) * up(x))} for every token: a dense layer, or a shared expert. */
public record SwiGlu(Projection gate, Projection up, Projection down) {
    /** Loads {@code gate_proj}, {@code up_proj} and {@code down_proj}. */
    public static SwiGlu load(Weights weights, long hidden, long intermediate) throws IOException {
        return new SwiGlu(
                weights.projection("gate_proj", intermediate, hidden),
                weights.projection("up_proj", intermediate, hidden),
                weights.projection("down_proj", hidden, intermediate));
    }

    /** {@code x * sigmoid(x)}. DJL's swish multiplies by a number first. */
    static NDArray silu(NDArray x) {
        return x.mul(Activation.sigmoid(x));
    }

    /** Computes the layer for {@code x} [...,H]; returns FLOAT32 [...,H]. */
    public NDArray apply(NDArray x) {
        return down.apply(silu(gate.apply(x)).mul(up.apply(x)));
    }
}
