package io.deepep.host;

import io.deepep.Event;

/**
 * A point in a {@link HostStream}'s order. The event of submitted work remembers the work's
 * failure: {@link #synchronize()} rethrows that very exception object, with the stack trace of the
 * thread that ran the work, each time it is called. The event of {@link HostStream#record()}
 * belongs to no work and only waits.
 *
 * <p>An event of work that has finished can be used again for other work, see {@link
 * HostStream#submit(Runnable, HostEvent)}: from then on it stands for that work. Streams that were
 * told to wait for it before still wait for the point it was then.
 */
public final class HostEvent implements Event {
    private final HostStream stream;
    private long ticket;
    private Runnable work;
    private Event awaited;
    private final long awaitedTicket;
    private Throwable failure;

    /** The event of work, or of a wait for {@code awaited}; of a point if both are null. */
    HostEvent(HostStream stream, long ticket, Runnable work, Event awaited) {
        this.stream = stream;
        this.ticket = ticket;
        this.work = work;
        this.awaited = awaited;
        this.awaitedTicket = awaited instanceof HostEvent point ? point.ticket : 0;
    }

    /** Becomes the event of other work of the same stream; the work before has finished. */
    HostEvent again(long newTicket, Runnable newWork) {
        ticket = newTicket;
        work = newWork;
        failure = null;
        return this;
    }

    /**
     * Runs what was submitted, keeping its failure; the stream publishes both by counting the
     * ticket as finished.
     */
    void run() {
        try {
            if (awaited instanceof HostEvent point) {
                point.stream.await(awaitedTicket);
            } else if (awaited != null) {
                awaited.synchronize();
            } else {
                work.run();
            }
        } catch (Throwable thrown) {
            // Whoever caused the awaited event learns of its failure there; the waiting stream goes
            // on.
            failure = awaited == null ? thrown : null;
        } finally {
            work = null;
            awaited = null;
        }
    }

    HostStream stream() {
        return stream;
    }

    long ticket() {
        return ticket;
    }

    @Override
    public boolean isDone() {
        return stream.hasFinished(ticket);
    }

    /**
     * {@inheritDoc}
     *
     * @throws IllegalStateException if the caller is interrupted (its interrupt flag is set again)
     *     or is the work of this event's own stream
     */
    @Override
    public void synchronize() {
        stream.await(ticket);
        if (failure != null) {
            HostEvent.<RuntimeException>rethrow(failure);
        }
    }

    /** Throws whatever the work threw, as it was. */
    @SuppressWarnings("unchecked")
    private static <T extends Throwable> void rethrow(Throwable failure) throws T {
        throw (T) failure;
    }
}
