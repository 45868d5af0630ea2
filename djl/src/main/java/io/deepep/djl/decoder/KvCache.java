package io.deepep.djl.decoder;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import io.deepep.djl.decoder.Pass.Sequence;

/**
 * What one layer remembers of every token: FLOAT32 [slots*maxLength, heads, channels], a slot per
 * sequence.
 */
final class KvCache {
    private final int numSlots;
    private final int maxLength;
    private final NDArray rows;

    KvCache(NDManager manager, DecoderOptions options, long numHeads, long channels) {
        numSlots = options.maxSequences();
        maxLength = options.maxLength();
        rows =
                manager.zeros(
                        new Shape((long) numSlots * maxLength, numHeads, channels),
                        DataType.FLOAT32);
    }

    /** Writes [T,heads,channels] where the tokens of a pass belong; a prefill clears its slots. */
    void write(Pass pass, NDArray values) {
        if (pass.sequences() != null) {
            // Masks hide what earlier sequences left, but not NaN.
            NDArray zeros =
                    pass.scope().zeros(new Shape(maxLength).addAll(rows.getShape().slice(1)));
            for (Sequence sequence : pass.sequences()) {
                long first = (long) sequence.slot() * maxLength;
                rows.set(new NDIndex("{}:{}", first, first + maxLength), zeros);
            }
        }
        rows.set(new NDIndex("{}", pass.cacheRows()), values);
    }

    /** [slots,maxLength,heads,channels]. */
    NDArray all(NDManager scope) {
        NDArray all = rows.get(scope, new NDIndex(":"));
        return all.reshape(new Shape(numSlots, maxLength).addAll(rows.getShape().slice(1)));
    }
}
