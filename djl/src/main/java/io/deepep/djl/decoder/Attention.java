package io.deepep.djl.decoder;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.index.NDIndex;
import io.deepep.djl.decoder.Pass.Sequence;
import io.deepep.djl.script.Operators;

/** How tokens look at those before them. */
interface Attention {
    /** [T,H] of x FLOAT32 [T,H], T at least 1, in the type of the weights; writes the cache. */
    NDArray apply(NDArray x, Pass pass);

    /**
     * Heads that look at what a pass has written.
     *
     * @param window how far back a token may look; 0 for all
     * @param scale what scores are multiplied by
     * @param sinks FLOAT32 [heads], scores that take their share of the softmax and give nothing;
     *     or null
     */
    record Heads(int window, double scale, NDArray sinks) {
        /**
         * [T,heads*Dv], in the type of the cache.
         *
         * @param q [T,heads,D]
         * @param k [T,kvHeads,D], of the same tokens
         * @param v [T,kvHeads,Dv]
         * @param keys what has been written of k, [slots,maxLength,kvHeads,D]
         * @param values what has been written of v, [slots,maxLength,kvHeads,Dv]
         */
        NDArray attend(Pass pass, NDArray q, NDArray k, NDArray v, NDArray keys, NDArray values) {
            if (pass.sequences() == null) {
                NDArray mask = pass.mask((int) keys.getShape().get(1), window);
                return Operators.attendSlots(q, keys, values, mask, scale, sinks);
            }
            NDList results = new NDList();
            for (Sequence sequence : pass.sequences()) {
                NDIndex own = sequence.tokens();
                results.add(
                        Operators.attendSequence(
                                q.get(own),
                                k.get(own),
                                v.get(own),
                                pass.mask(sequence, window),
                                scale,
                                sinks));
            }
            return NDArrays.concat(results);
        }
    }
}
