package io.deepep.host;

import io.deepep.Device;
import io.deepep.Event;
import io.deepep.Stream;

/**
 * Work of the host that runs in order: submitted work on a daemon thread of the stream's own, which
 * starts with the first of it, or inline on the caller's.
 *
 * <p>Every piece of work has a ticket; tickets finish one after the other, whichever thread runs
 * them. A failure belongs to the event of the work that failed: the stream goes on, and {@link
 * #synchronize()} does not throw it. Safe for any number of threads. Work must not wait for its own
 * stream: that throws {@link IllegalStateException} in place of a deadlock. Whoever is interrupted
 * while it waits here gets an {@link IllegalStateException} with the interrupt flag set.
 */
public final class HostStream implements Stream, AutoCloseable {
    private static final int QUEUE_LENGTH = 64;

    private final String name;
    private final Object lock = new Object();
    private final HostEvent[] queue = new HostEvent[QUEUE_LENGTH];
    private int head;
    private int numQueued;
    private long lastTicket;
    private volatile long finished;
    private Thread thread;
    private Thread runner;
    private boolean closed;

    /** A stream; its thread has the same name. */
    public HostStream(String name) {
        this.name = name;
    }

    /**
     * Runs {@code work} on the stream's thread, after all work so far. Returns at once, unless 64
     * pieces of work are queued: then it waits for one of them to start.
     *
     * @return tells when the work has finished, and rethrows its failure
     * @throws IllegalStateException if the stream is closed
     */
    public HostEvent submit(Runnable work) {
        return submit(work, null);
    }

    /**
     * Like {@link #submit(Runnable)}, but makes no garbage where {@code event} is of earlier work
     * of this stream that has finished: then it is used again, and returned.
     *
     * @param event may be null or unfinished, which gives a new one
     */
    public HostEvent submit(Runnable work, HostEvent event) {
        synchronized (lock) {
            awaitRoom();
            long ticket = ++lastTicket;
            boolean reusable = event != null && event.stream() == this && event.isDone();
            HostEvent submitted =
                    reusable ? event.again(ticket, work) : new HostEvent(this, ticket, work, null);
            enqueue(submitted);
            return submitted;
        }
    }

    /**
     * Runs {@code work} on the calling thread, in the stream's order: at once if the stream is
     * idle, else when it has become idle. Makes no garbage. What the work throws reaches the
     * caller.
     *
     * @throws IllegalStateException if the stream is closed
     */
    public void runInline(Runnable work) {
        synchronized (lock) {
            requireOpen();
            while (finished < lastTicket) {
                awaitChange();
                requireOpen();
            }
            lastTicket++;
            runner = Thread.currentThread();
        }
        try {
            work.run();
        } finally {
            finish();
        }
    }

    @Override
    public Device device() {
        return Device.host();
    }

    /** {@inheritDoc} The event does not carry failures. */
    @Override
    public HostEvent record() {
        synchronized (lock) {
            return new HostEvent(this, lastTicket, null, null);
        }
    }

    /**
     * {@inheritDoc} A failure of the awaited work does not touch this stream. Takes a place in the
     * queue, see {@link #submit}.
     */
    @Override
    public void waitFor(Event event) {
        boolean ordered = event instanceof HostEvent own && own.stream() == this;
        boolean over = ordered || event.isDone();
        synchronized (lock) {
            requireOpen();
            if (over) {
                return;
            }
            awaitRoom();
            enqueue(new HostEvent(this, ++lastTicket, null, event));
        }
    }

    @Override
    public void synchronize() {
        synchronized (lock) {
            await(lastTicket);
        }
    }

    /**
     * Finishes all work so far, then ends the thread. Work that comes later is refused. Idempotent.
     */
    @Override
    public void close() {
        Thread ending;
        synchronized (lock) {
            refuseOwnWork();
            closed = true;
            lock.notifyAll();
            await(lastTicket);
            ending = thread;
        }
        if (ending != null) {
            try {
                ending.join();
            } catch (InterruptedException interrupted) {
                throw interrupted(interrupted);
            }
        }
    }

    /** Whether the calling thread runs work of this stream. */
    public boolean isRunning() {
        synchronized (lock) {
            return Thread.currentThread().equals(runner);
        }
    }

    boolean hasFinished(long ticket) {
        return finished >= ticket;
    }

    /** Waits until the work with the given ticket has finished. */
    void await(long ticket) {
        if (hasFinished(ticket)) {
            return;
        }
        synchronized (lock) {
            while (!hasFinished(ticket)) {
                awaitChange();
            }
        }
    }

    private void awaitRoom() {
        requireOpen();
        while (numQueued == QUEUE_LENGTH) {
            awaitChange();
            requireOpen();
        }
        if (thread == null) {
            thread = Thread.ofPlatform().name(name).daemon().start(this::runQueue);
        }
    }

    private void enqueue(HostEvent event) {
        queue[(head + numQueued) % QUEUE_LENGTH] = event;
        numQueued++;
        lock.notifyAll();
    }

    private void runQueue() {
        for (HostEvent event = take(); event != null; event = take()) {
            event.run();
            // Work that was interrupted has thrown; the next starts clean.
            Thread.interrupted();
            finish();
        }
    }

    /**
     * The next queued work once it is its turn: inline work may hold an earlier ticket. Null when
     * the stream has closed.
     */
    private HostEvent take() {
        synchronized (lock) {
            while (numQueued == 0 || queue[head].ticket() != finished + 1) {
                if (closed && numQueued == 0) {
                    return null;
                }
                waitOnQueue();
            }
            HostEvent event = queue[head];
            queue[head] = null;
            head = (head + 1) % QUEUE_LENGTH;
            numQueued--;
            runner = Thread.currentThread();
            lock.notifyAll();
            return event;
        }
    }

    @SuppressWarnings("WaitNotInLoop") // the caller loops
    private void waitOnQueue() {
        try {
            lock.wait();
        } catch (InterruptedException betweenWork) {
            // This thread ends with the stream only: an interrupt that finds it without work
            // interrupts nothing.
        }
    }

    private void finish() {
        synchronized (lock) {
            runner = null;
            finished++;
            lock.notifyAll();
        }
    }

    @SuppressWarnings("WaitNotInLoop") // the callers loop
    private void awaitChange() {
        refuseOwnWork();
        try {
            lock.wait();
        } catch (InterruptedException interrupted) {
            throw interrupted(interrupted);
        }
    }

    private void refuseOwnWork() {
        if (Thread.currentThread().equals(runner)) {
            throw new IllegalStateException(
                    this
                            + ": work on the stream waits for the stream itself; wait on another thread");
        }
    }

    private IllegalStateException interrupted(InterruptedException cause) {
        Thread.currentThread().interrupt();
        return new IllegalStateException("interrupted while waiting for " + this, cause);
    }

    private void requireOpen() {
        if (closed) {
            throw new IllegalStateException(
                    this + " is closed; keep the buffer or the engine open that it belongs to");
        }
    }

    @Override
    public String toString() {
        return "host stream " + name;
    }
}
