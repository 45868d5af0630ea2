package io.deepep.djl.decoder;

import static io.deepep.djl.TorchTensors.scalar;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import io.deepep.DType;
import io.deepep.djl.TorchTensors;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Where the tokens of one forward pass stand, for all layers alike. A prefill has whole sequences,
 * one after the other, each attending to itself. A decoding step has one token per slot of the
 * cache, used or not, and attends to all of the cache behind a mask: its shapes never change.
 */
final class Pass {
    private static final float NEVER = 1e30f;

    private final NDManager scope;
    private final NDArray positions;
    private final NDArray cacheRows;
    private final List<Sequence> sequences;
    private final DType type;

    /** What the first layer has made for all. */
    private final Map<MaskKey, NDArray> masks = new HashMap<>();

    private Rope.Angles angles;

    /** Tokens {@code first} to {@code first + length - 1} of the pass, of a slot of the cache. */
    record Sequence(int slot, int first, int length) {
        NDIndex tokens() {
            return new NDIndex().addSliceDim(first, first + (long) length);
        }
    }

    /** A sequence, or null for all slots, and how far back its tokens may look. */
    private record MaskKey(Sequence sequence, int window) {}

    /**
     * A pass.
     *
     * @param positions INT64 [T], of each token in its sequence
     * @param cacheRows INT64 [T], where its keys and values go
     * @param sequences of a prefill; null when decoding
     * @param type in which tokens attend
     */
    Pass(
            NDManager scope,
            NDArray positions,
            NDArray cacheRows,
            List<Sequence> sequences,
            DType type) {
        this.scope = scope;
        this.type = type;
        this.positions = positions;
        this.cacheRows = cacheRows;
        this.sequences = sequences;
    }

    NDManager scope() {
        return scope;
    }

    NDArray cacheRows() {
        return cacheRows;
    }

    List<Sequence> sequences() {
        return sequences;
    }

    int numTokens() {
        return (int) positions.getShape().get(0);
    }

    /** The angles of its tokens; all layers have the same rope. */
    Rope.Angles angles(Rope rope) {
        if (angles == null) {
            angles = rope.at(scope, positions);
        }
        return angles;
    }

    /**
     * What is added to scores of every slot's token: [T,1,1,L], 0 where it may look and very
     * negative elsewhere.
     *
     * @param length L, keys from position 0 on
     * @param window how far back a token may look, itself included; 0 for all
     */
    NDArray mask(int length, int window) {
        return masks.computeIfAbsent(
                new MaskKey(null, window),
                _ -> mask(positions.reshape(-1, 1, 1, 1), length, window));
    }

    /** The same for the tokens of a sequence, which look at each other: [1,1,Tq,Tq]. */
    NDArray mask(Sequence sequence, int window) {
        return masks.computeIfAbsent(
                new MaskKey(sequence, window),
                _ ->
                        mask(
                                positions.get(sequence.tokens()).reshape(1, 1, -1, 1),
                                sequence.length,
                                window));
    }

    private NDArray mask(NDArray query, int length, int window) {
        NDArray key = scope.arange(0, length, 1, DataType.INT64).reshape(1, 1, 1, length);
        NDArray allowed = key.lte(query);
        if (window > 0) {
            allowed = allowed.logicalAnd(key.gt(query.sub(scalar(window))));
        }
        NDArray mask = allowed.toType(DataType.FLOAT32, true).sub(scalar(1)).mul(scalar(NEVER));
        NDArray typed = TorchTensors.empty(scope, type, mask.getShape().getShape());
        TorchTensors.cast(mask, typed);
        return typed;
    }
}
