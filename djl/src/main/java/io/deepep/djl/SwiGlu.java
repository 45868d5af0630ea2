package io.deepep.djl;

import ai.djl.ndarray.NDArray;
import io.deepep.djl.script.Operators;
import java.io.IOException;

/**
 * {@code down(silu(gate(x)) * up(x))} for every token: a dense layer, or a shared expert.
 *
 * @param gateUp the gate's outputs, then as many of up
 */
public record SwiGlu(Projection gateUp, Projection down) {
    /** Loads {@code gate_proj}, {@code up_proj} and {@code down_proj}. */
    public static SwiGlu load(Weights weights, long hidden, long intermediate) throws IOException {
        boolean biased = weights.has("gate_proj.bias");
        return new SwiGlu(
                weights.projections(
                        hidden,
                        biased,
                        new Weights.Outputs("gate_proj", intermediate),
                        new Weights.Outputs("up_proj", intermediate)),
                weights.projection("down_proj", hidden, intermediate));
    }

    /** Computes the layer for {@code x} [...,H]; returns FLOAT32 [...,H]. */
    public NDArray apply(NDArray x) {
        return down.apply(Operators.swiglu(gateUp.multiply(x)));
    }
}
