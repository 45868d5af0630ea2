package io.deepep.djl.decoder;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import io.deepep.djl.TorchTensors;
import io.deepep.djl.decoder.Pass.Sequence;
import io.deepep.djl.script.Operators;

/** What one layer remembers of every token, in the type of its weights; a slot per sequence. */
final class KvCache {
    private final int maxLength;

    /** [slots*maxLength,heads,channels]. */
    private final NDArray rows;

    private final NDArray slots;

    KvCache(NDManager manager, DecoderOptions options, long numHeads, long channels) {
        int numSlots = options.maxSequences();
        maxLength = options.maxLength();
        long numRows = (long) numSlots * maxLength;
        slots =
                TorchTensors.empty(
                        manager, options.type(), numSlots, maxLength, numHeads, channels);
        rows = slots.reshape(numRows, numHeads, channels);
        Operators.clearRows(rows, 0, numRows, manager);
    }

    /** Writes [T,heads,channels] where the tokens of a pass belong; a prefill clears its slots. */
    void write(Pass pass, NDArray values) {
        if (pass.sequences() != null) {
            // Masks hide what earlier sequences left, but not NaN.
            for (Sequence sequence : pass.sequences()) {
                long first = (long) sequence.slot() * maxLength;
                Operators.clearRows(rows, first, maxLength, pass.scope());
            }
        }
        Operators.setRows(rows, pass.cacheRows(), values);
    }

    /** [slots,maxLength,heads,channels]. */
    NDArray all() {
        return slots;
    }
}
