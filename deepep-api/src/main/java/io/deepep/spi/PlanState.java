package io.deepep.spi;

import io.deepep.Tensor;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/**
 * What the buffer that runs a plan knows of it: its tensors by name, and what the buffer derived
 * from it (checked shapes, resolved addresses, result objects), so that the next run derives
 * nothing again.
 */
public final class PlanState {
    private final Consumer<BiConsumer<String, Tensor>> tensors;
    private final Consumer<BiConsumer<String, Tensor>> outputs;
    private volatile Object prepared;

    /**
     * The state of a plan that no buffer has run.
     *
     * @param tensors gives all tensors with the names that errors use, null for those not given
     * @param outputs gives those that a call writes
     */
    public PlanState(
            Consumer<BiConsumer<String, Tensor>> tensors,
            Consumer<BiConsumer<String, Tensor>> outputs) {
        this.tensors = tensors;
        this.outputs = outputs;
    }

    /** Names what a call reads and writes; what was not given is null. */
    public void forEachTensor(BiConsumer<String, Tensor> action) {
        tensors.accept(action);
    }

    /** Names what a call writes, which is part of {@link #forEachTensor}. */
    public void forEachOutput(BiConsumer<String, Tensor> action) {
        outputs.accept(action);
    }

    /** What the last buffer left here, or null. */
    public Object prepared() {
        return prepared;
    }

    /** Leaves what this buffer derived. */
    public void prepared(Object derived) {
        this.prepared = derived;
    }
}
