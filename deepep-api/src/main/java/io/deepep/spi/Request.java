package io.deepep.spi;

import io.deepep.Tensor;
import java.util.function.BiConsumer;

/**
 * Base of the reusable requests: gives the buffer that executes a request a place to keep what it
 * derived from it (checked shapes, resolved addresses, result objects), so that the next call with
 * the same request derives nothing again. Not for engines.
 */
public abstract class Request {
    private volatile Object plan;

    /** For the subclasses of {@code io.deepep}. */
    protected Request() {}

    /** Names what a call reads and writes, as errors name it; what was not given is null. */
    public abstract void forEachTensor(BiConsumer<String, Tensor> action);

    /** Names what a call writes, which is part of {@link #forEachTensor}. */
    public abstract void forEachOutput(BiConsumer<String, Tensor> action);

    /** What the last buffer left here, or null. */
    public final Object plan() {
        return plan;
    }

    /** Leaves the executing buffer's derived state. */
    public final void plan(Object derived) {
        this.plan = derived;
    }
}
