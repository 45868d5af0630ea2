package io.deepep.djl.decoder;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.training.ParameterStore;
import io.deepep.djl.ExpertParallelMoE;
import io.deepep.djl.SwiGlu;

/**
 * Attention, then experts or a dense layer, each with a norm before it and added to its input.
 *
 * @param moe the experts of all ranks; null in a dense layer
 * @param dense null in a layer with experts
 */
record DecoderLayer(
        RmsNorm attentionNorm,
        Attention attention,
        RmsNorm mlpNorm,
        ExpertParallelMoE moe,
        SwiGlu dense) {
    /** FLOAT32 [T,H] of x [T,H]. Collective where there are experts. */
    NDArray apply(NDArray x, Pass pass) {
        if (pass.numTokens() == 0) {
            // Nothing to attend to, but this rank's experts work for the others.
            return moe == null ? x : experts(x);
        }
        NDArray attended = x.add(attention.apply(attentionNorm.apply(x), pass));
        NDArray normed = mlpNorm.apply(attended);
        return attended.add(moe == null ? dense.apply(normed) : experts(normed));
    }

    private NDArray experts(NDArray x) {
        ParameterStore store = new ParameterStore(x.getManager(), false);
        return moe.forward(store, new NDList(x), false).singletonOrThrow();
    }
}
