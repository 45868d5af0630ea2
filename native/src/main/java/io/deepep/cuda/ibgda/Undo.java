package io.deepep.cuda.ibgda;

import java.util.ArrayDeque;
import java.util.Deque;

/** What has been made, to be given back in the opposite order. */
final class Undo implements AutoCloseable {
    private final Deque<Runnable> steps = new ArrayDeque<>();

    /** Remembers how to give it back. */
    <T> T made(T thing, Runnable giveBack) {
        steps.push(giveBack);
        return thing;
    }

    /** Leaves everything to others. */
    void forget() {
        steps.clear();
    }

    @Override
    public void close() {
        while (!steps.isEmpty()) {
            steps.pop().run();
        }
    }
}
