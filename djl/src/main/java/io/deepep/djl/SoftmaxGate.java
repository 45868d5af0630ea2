package io.deepep.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;

/**
 * The K experts of the largest softmax probabilities (Mixtral, Qwen, DBRX). Normalised, the weights
 * are the softmax over the K logits.
 */
public final class SoftmaxGate extends Gate {
    /** A gate of the given size. */
    public SoftmaxGate(TopkRule rule) {
        super(rule);
    }

    @Override
    protected NDList select(NDArray logits, Values parameter) {
        NDList top = logits.softmax(-1).topK(rule().numTopk(), 1, true, true);
        return new NDList(top.get(1), top.get(0));
    }
}
