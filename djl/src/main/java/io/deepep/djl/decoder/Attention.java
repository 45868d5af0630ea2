package io.deepep.djl.decoder;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.Shape;
import io.deepep.djl.decoder.Pass.Sequence;

/** How tokens look at those before them. */
interface Attention {
    /** FLOAT32 [T,H] of x [T,H], T at least 1; writes the cache. */
    NDArray apply(NDArray x, Pass pass);

    /**
     * Heads that look at what a pass has written.
     *
     * @param window how far back a token may look; 0 for all
     * @param scale a scalar that scores are multiplied by
     * @param sinks FLOAT32 [1,heads,1,1], scores that take their share of the softmax and give
     *     nothing; or null. In the shape of their use, because a view made in a pass would stay
     *     with the model's manager
     */
    record Heads(int window, NDArray scale, NDArray sinks) {
        /**
         * FLOAT32 [T,heads*Dv].
         *
         * @param q [T,heads,D]
         * @param k [T,kvHeads,D], of the same tokens
         * @param v [T,kvHeads,Dv]
         * @param keys what has been written of k
         * @param values what has been written of v
         */
        NDArray attend(Pass pass, NDArray q, NDArray k, NDArray v, NDArray keys, NDArray values) {
            if (pass.sequences() == null) {
                NDArray positions = pass.positions().expandDims(1);
                int length = (int) keys.getShape().get(1);
                return attend(q.expandDims(1), keys, values, pass.mask(positions, length, window));
            }
            NDList results = new NDList();
            for (Sequence sequence : pass.sequences()) {
                NDIndex own =
                        new NDIndex()
                                .addSliceDim(
                                        sequence.first(), sequence.first() + sequence.length());
                NDArray positions = pass.positions().get(own).expandDims(0);
                results.add(
                        attend(
                                q.get(own).expandDims(0),
                                k.get(own).expandDims(0),
                                v.get(own).expandDims(0),
                                pass.mask(positions, sequence.length(), window)));
            }
            return NDArrays.concat(results);
        }

        /** q [B,Tq,heads,D], k [B,L,kvHeads,D], v [B,L,kvHeads,Dv]; heads/kvHeads share a key. */
        private NDArray attend(NDArray q, NDArray k, NDArray v, NDArray mask) {
            Shape of = q.getShape();
            long batch = of.get(0);
            long queries = of.get(1);
            long heads = of.get(2);
            long kvHeads = k.getShape().get(2);
            long length = k.getShape().get(1);
            NDArray byKey =
                    q.mul(scale)
                            .reshape(batch, queries, kvHeads, heads / kvHeads, of.get(3))
                            .transpose(0, 2, 3, 1, 4)
                            .reshape(batch, kvHeads, heads / kvHeads * queries, of.get(3));
            NDArray scores =
                    byKey.matMul(k.transpose(0, 2, 3, 1))
                            .reshape(batch, heads, queries, length)
                            .add(mask);
            NDArray weights =
                    softmax(scores).reshape(batch, kvHeads, heads / kvHeads * queries, length);
            return weights.matMul(v.transpose(0, 2, 1, 3))
                    .reshape(batch, kvHeads, heads / kvHeads, queries, -1)
                    .transpose(0, 3, 1, 2, 4)
                    .reshape(batch * queries, -1);
        }

        private NDArray softmax(NDArray scores) {
            if (sinks == null) {
                return scores.softmax(-1);
            }
            Shape shape = scores.getShape();
            NDArray sink =
                    scores.getManager()
                            .zeros(new Shape(shape.get(0), 1, shape.get(2), 1))
                            .add(sinks);
            NDArray weights = scores.concat(sink, -1).softmax(-1);
            return weights.get(new NDIndex("..., :{}", shape.get(3)));
        }
    }
}
