package io.deepep.buffer;

import io.deepep.BufferOptions;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.observe.BufferObserver;
import io.deepep.observe.ObservedCall;
import java.util.List;

/**
 * Who observes one rank's calls: the flight recorder, if a recording runs that asks for the events,
 * and the observers of the buffer.
 */
final class CallObservers {
    private static final System.Logger LOG = System.getLogger(CallObservers.class.getName());

    /** Set while a thread tells observers, of whatever buffer. */
    private static final ThreadLocal<Boolean> TELLING = ThreadLocal.withInitial(() -> false);

    private final BufferOptions options;
    private final List<BufferObserver> observers;

    /** Never committed: the flight recorder answers through an event whether it wants any. */
    private final OperationEvent operations = new OperationEvent();

    private final PeerEvent peers = new PeerEvent();
    private final ExpertEvent experts = new ExpertEvent();
    private long calls;
    private boolean failureLogged;

    CallObservers(BufferOptions options) {
        this.options = options;
        this.observers = options.observers();
    }

    /**
     * Requires what a runtime of somebody's own may lack.
     *
     * @throws DeepEpUnavailableException if this one has no flight recorder
     */
    static void requireFlightRecorder() {
        try {
            new OperationEvent().isEnabled();
        } catch (NoClassDefFoundError missing) {
            throw new DeepEpUnavailableException(
                    "this Java runtime has no flight recorder (" + missing.getMessage() + ")",
                    "make it with the module jdk.jfr (jlink --add-modules jdk.jfr)",
                    missing);
        }
    }

    BufferOptions options() {
        return options;
    }

    /** Whether anybody wants to know; costs next to nothing and allocates nothing. */
    boolean any() {
        return !observers.isEmpty()
                || operations.isEnabled()
                || peers.isEnabled()
                || experts.isEnabled();
    }

    /**
     * Tells everybody.
     *
     * @param event begun with the call, ended with it
     */
    void tell(OperationEvent event, ObservedCall seen) {
        long number = nextCall();
        if (event.shouldCommit()) {
            event.fill(number, seen);
            event.commit();
        }
        if (peers.isEnabled()) {
            PeerEvent.commitAll(number, seen);
        }
        if (experts.isEnabled()) {
            ExpertEvent.commitAll(number, seen);
        }
        if (!observers.isEmpty()) {
            boolean before = TELLING.get();
            TELLING.set(true);
            try {
                tell(seen);
            } finally {
                TELLING.set(before);
            }
        }
    }

    /**
     * Whether the calling thread is an observer's. It must not wait for the call of another thread,
     * whose observer may wait for its own.
     */
    static boolean isTelling() {
        return TELLING.get();
    }

    private void tell(ObservedCall seen) {
        for (BufferObserver observer : observers) {
            try {
                observer.observe(seen);
            } catch (Throwable failed) {
                // Errors, too: of a library of the wrong version, say. And other languages throw
                // checked exceptions without declaring them.
                logOnce(observer, failed);
            }
        }
    }

    /** One warning is enough: the next calls will most likely fare the same. */
    synchronized void logOnce(Object observer, Throwable failed) {
        if (!failureLogged) {
            failureLogged = true;
            LOG.log(
                    System.Logger.Level.WARNING,
                    "an observer failed; calls continue, and further failures are not logged: "
                            + observer,
                    failed);
        }
    }

    private synchronized long nextCall() {
        return ++calls;
    }
}
