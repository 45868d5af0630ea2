package io.deepep.spi;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.Consumer;

/** What has been made, to be given back in the opposite order. Serves one thread. */
public final class Undo implements AutoCloseable {
    private final Deque<Runnable> steps = new ArrayDeque<>();

    /** Remembers how to give it back. */
    public <T> T made(T thing, Consumer<? super T> giveBack) {
        steps.push(() -> giveBack.accept(thing));
        return thing;
    }

    /** Leaves everything to others. */
    public void forget() {
        steps.clear();
    }

    /** Gives everything back because of {@code failure}, which gets what fails on the way. */
    public void close(Throwable failure) {
        while (!steps.isEmpty()) {
            try {
                steps.pop().run();
            } catch (RuntimeException | Error e) {
                failure.addSuppressed(e);
            }
        }
    }

    /** Gives everything back, also what comes after a step that fails. */
    @Override
    public void close() {
        while (!steps.isEmpty()) {
            try {
                steps.pop().run();
            } catch (RuntimeException | Error e) {
                close(e);
                throw e;
            }
        }
    }
}
