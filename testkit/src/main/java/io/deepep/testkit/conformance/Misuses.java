package io.deepep.testkit.conformance;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Stream;

/**
 * A table of calls that must be refused, which a subclass fills.
 *
 * @param <R> one rank, with what it needs for the calls
 */
public abstract class Misuses<R> {
    private final List<Misuse<R>> all = new ArrayList<>();

    /** Arguments that do not fit. */
    protected final void argument(String name, String mentions, Consumer<R> call) {
        all.add(new Misuse<>(name, IllegalArgumentException.class, mentions, call));
    }

    /** An argument that is missing. */
    protected final void missing(String name, String mentions, Consumer<R> call) {
        all.add(new Misuse<>(name, NullPointerException.class, mentions, call));
    }

    /** A call that this buffer was not opened for. */
    protected final void state(String name, String mentions, Consumer<R> call) {
        all.add(new Misuse<>(name, IllegalStateException.class, mentions, call));
    }

    public final Stream<Misuse<R>> stream() {
        return all.stream();
    }
}
