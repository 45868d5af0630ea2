package io.deepep.spi;

import io.deepep.Tensor;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/**
 * The state that a buffer keeps in a plan: the plan's tensors by name, and what the buffer has
 * derived from it (checked shapes, resolved addresses, result objects), so that later runs derive
 * nothing again.
 */
public final class PlanState {
    private final Consumer<BiConsumer<String, Tensor>> tensors;
    private final Consumer<BiConsumer<String, Tensor>> outputs;
    private volatile Object prepared;

    /**
     * Creates the state of a plan that no buffer has run.
     *
     * @param tensors passes on all tensors with the names that errors use; null for those not given
     * @param outputs passes on the tensors that a call writes
     */
    public PlanState(
            Consumer<BiConsumer<String, Tensor>> tensors,
            Consumer<BiConsumer<String, Tensor>> outputs) {
        this.tensors = tensors;
        this.outputs = outputs;
    }

    /**
     * Visits the tensors that a call reads or writes, with their names; null for those not given.
     */
    public void forEachTensor(BiConsumer<String, Tensor> action) {
        tensors.accept(action);
    }

    /** Visits the tensors that a call writes, a subset of {@link #forEachTensor}. */
    public void forEachOutput(BiConsumer<String, Tensor> action) {
        outputs.accept(action);
    }

    /** What the latest buffer derived, or null. */
    public Object prepared() {
        return prepared;
    }

    /** Stores what a buffer derived. */
    public void prepared(Object derived) {
        this.prepared = derived;
    }
}
