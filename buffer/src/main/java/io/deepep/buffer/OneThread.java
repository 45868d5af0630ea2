package io.deepep.buffer;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * Notices threads that use a buffer at once, which would get each other's rows. Threads may take
 * turns, and a thread may come in again.
 */
final class OneThread {
    private static final VarHandle INSIDE;

    static {
        try {
            INSIDE = MethodHandles.lookup().findVarHandle(OneThread.class, "inside", Thread.class);
        } catch (ReflectiveOperationException impossible) {
            throw new ExceptionInInitializerError(impossible);
        }
    }

    private final int rank;

    @SuppressWarnings("unused") // set by the handle
    private Thread inside;

    OneThread(int rank) {
        this.rank = rank;
    }

    /** Comes in; returns whom to give to {@link #leave}. */
    Thread enter() {
        Thread current = Thread.currentThread();
        Thread other = (Thread) INSIDE.compareAndExchange(this, (Thread) null, current);
        if (other != null && !other.equals(current)) {
            throw new IllegalStateException(
                    "threads %s and %s use the buffer of rank %s at once; use one thread at a time"
                            .formatted(other.getName(), current.getName(), rank));
        }
        return other;
    }

    /** Leaves, with what {@link #enter} returned. */
    void leave(Thread before) {
        INSIDE.setRelease(this, before);
    }
}
