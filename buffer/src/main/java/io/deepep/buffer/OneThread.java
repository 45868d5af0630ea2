package io.deepep.buffer;

import io.deepep.cuda.VirtualThreads;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Notices threads that use a buffer at once, which would get each other's rows. Threads may take
 * turns, and a thread may come in again.
 */
final class OneThread {
    private final AtomicReference<Thread> inside = new AtomicReference<>();
    private final int rank;

    OneThread(int rank) {
        this.rank = rank;
    }

    /** Comes in; returns whom to give to {@link #leave}. */
    Thread enter() {
        Thread current = Thread.currentThread();
        Thread other = inside.compareAndExchange(null, current);
        if (other != null && !other.equals(current)) {
            throw new IllegalStateException(
                    "threads %s and %s use the buffer of rank %s at once; use one thread at a time"
                            .formatted(other.getName(), current.getName(), rank));
        }
        return other;
    }

    /** Whether the calling thread is inside. */
    boolean isInside() {
        return Thread.currentThread().equals(inside.getAcquire());
    }

    /** Comes in once nobody is inside, regardless of interrupts; leaves to nobody. */
    void enterLast() {
        for (long pauses = 0; !inside.compareAndSet(null, Thread.currentThread()); pauses++) {
            VirtualThreads.pause(pauses);
        }
    }

    /** Leaves, with what {@link #enter} returned. */
    void leave(Thread before) {
        inside.setRelease(before);
    }
}
