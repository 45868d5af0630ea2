package io.deepep.djl.decoder;

import static io.deepep.djl.TorchTensors.scalar;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import java.util.List;

/**
 * Where the tokens of one forward pass stand, for all layers alike. A prefill has whole sequences,
 * one after the other, each attending to itself. A decoding step has one token per slot of the
 * cache, used or not, and attends to all of the cache behind a mask: its shapes never change.
 *
 * @param positions INT64 [T], of each token in its sequence
 * @param cacheRows INT64 [T], where its keys and values go
 * @param sequences of a prefill; null when decoding
 */
record Pass(NDManager scope, NDArray positions, NDArray cacheRows, List<Sequence> sequences) {
    private static final float NEVER = 1e30f;

    /** Tokens {@code first} to {@code first + length - 1} of the pass, of a slot of the cache. */
    record Sequence(int slot, int first, int length) {}

    int numTokens() {
        return (int) positions.getShape().get(0);
    }

    /**
     * What is added to scores: FLOAT32 [B,1,Tq,L], 0 where a token may look and very negative
     * elsewhere.
     *
     * @param queries INT64 [B,Tq], positions
     * @param length L, keys from position 0 on
     * @param window how far back a token may look, itself included; 0 for all
     */
    NDArray mask(NDArray queries, int length, int window) {
        Shape shape = queries.getShape();
        NDArray query = queries.reshape(shape.get(0), 1, shape.get(1), 1);
        NDArray key = scope.arange(0, length, 1, DataType.INT64).reshape(1, 1, 1, length);
        NDArray allowed = key.lte(query);
        if (window > 0) {
            allowed = allowed.logicalAnd(key.gt(query.sub(window)));
        }
        return allowed.toType(DataType.FLOAT32, true).sub(scalar(1)).mul(scalar(NEVER));
    }
}
