package io.deepep.buffer;

import io.deepep.cuda.CudaOperation;
import io.deepep.observe.CallKind;
import io.deepep.observe.ObservedCall;
import io.deepep.spi.Operation;
import io.deepep.spi.RecordedFacts;
import io.deepep.spi.RunObservation;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.Predicate;
import java.util.function.Supplier;

/**
 * An operation whose runs are reported to observers. The one place where calls are measured: both
 * backends run the halves of every operation through it, on whichever thread. What goes wrong with
 * measuring is logged and changes nothing of the call.
 */
final class ObservedOperation<R> {
    private final Operation<R> target;
    private final CallKind kind;
    private final CallObservers observers;
    private final Resources resources;
    private final int maxOpenRuns;

    /** Whether {@link #receive} enqueues the second half, so that a run cannot end before it. */
    private final boolean receives;

    /** Runs whose second half has not run, the oldest first; guarded by itself. */
    private final Deque<Run> open = new ArrayDeque<>(2);

    private volatile boolean hasOpen;

    /**
     * Observes {@code target}.
     *
     * @param hooked whether two runs may be between their halves, else one
     */
    ObservedOperation(
            Operation<R> target,
            CallKind kind,
            boolean hooked,
            CallObservers observers,
            Resources resources) {
        this.target = target;
        this.kind = kind;
        this.observers = observers;
        this.resources = resources;
        this.maxOpenRuns = hooked ? 2 : 1;
        this.receives = hooked && target instanceof CudaOperation;
    }

    /** What is known of a run so far. */
    private static final class Run {
        private final OperationEvent event = new OperationEvent();
        private final long start = System.nanoTime();
        private final long[] waits;
        private final RunObservation observation;
        private final DeviceTimer.Span span;

        /** Of the second half, where it is enqueued on its own. */
        private DeviceTimer.Span receiveSpan;

        private long receiveStart;
        private long beginNanos;
        private long completeNanos;
        private long spanNanos;
        private boolean received;
        private boolean left;

        Run(long[] waits, RunObservation observation, DeviceTimer.Span span) {
            this.waits = waits;
            this.observation = observation;
            this.span = span;
            event.begin();
        }

        /** Time on the GPU, of all that was enqueued. */
        long deviceNanos() {
            long first = DeviceTimer.nanosOf(span);
            long second = received ? DeviceTimer.nanosOf(receiveSpan) : 0;
            return first < 0 || second < 0 ? RecordedFacts.UNKNOWN : first + second;
        }
    }

    /** What is called. */
    CallKind kind() {
        return kind;
    }

    void begin() {
        // What a graph holds runs later, as often as it is replayed, and the host does not see it.
        // To ask the GPU about earlier runs meanwhile would spoil the capture.
        if ((!hasOpen && !observers.any()) || resources.isCapturing()) {
            target.begin();
            return;
        }
        tellSuperseded();
        Run run = observers.any() ? open() : null;
        if (run == null) {
            target.begin();
            return;
        }
        try {
            target.begin();
        } catch (RuntimeException | Error failure) {
            turnWaits(run);
            run.beginNanos = System.nanoTime() - run.start;
            tell(run, false, failure);
            throw failure;
        }
        stop(run.span);
        turnWaits(run);
        run.beginNanos = System.nanoTime() - run.start;
        run.event.end();
        synchronized (open) {
            open.add(run);
            hasOpen = true;
        }
    }

    private Run open() {
        return measured(
                () -> {
                    RunObservation observation = target.observe();
                    return new Run(resources.waits(), observation, start());
                });
    }

    private DeviceTimer.Span start() {
        return measured(() -> DeviceTimer.start(resources.timer()));
    }

    private void stop(DeviceTimer.Span span) {
        measured(
                () -> {
                    DeviceTimer.stop(span);
                    return null;
                });
    }

    /** Null if it cannot be measured: the call is more important. */
    private <T> T measured(Supplier<T> measuring) {
        try {
            return measuring.get();
        } catch (RuntimeException failed) {
            observers.logOnce(this, failed);
            return null;
        }
    }

    /** Enqueues the second half of the oldest run that lacks it, see {@link CudaOperation}. */
    void receive() {
        CudaOperation<R> cuda = (CudaOperation<R>) target;
        Run run = hasOpen && !resources.isCapturing() ? oldestSent() : null;
        if (run == null) {
            cuda.receive();
            return;
        }
        run.receiveStart = System.nanoTime();
        run.receiveSpan = start();
        try {
            cuda.receive();
        } catch (RuntimeException | Error failure) {
            fail(run, failure);
            throw failure;
        }
        stop(run.receiveSpan);
        synchronized (open) {
            run.received = true;
        }
    }

    void complete() {
        Run run = hasOpen ? takeOldest() : null;
        if (run == null) {
            completeFirstHalf();
            return;
        }
        turnWaits(run);
        long start = receives ? run.receiveStart : System.nanoTime();
        Throwable failure = null;
        try {
            target.complete();
        } catch (RuntimeException | Error thrown) {
            failure = thrown;
            throw thrown;
        } finally {
            long end = System.nanoTime();
            run.completeNanos = end - start;
            run.spanNanos = end - run.start;
            run.event.end();
            turnWaits(run);
            tell(run, failure == null, failure);
        }
    }

    /**
     * Waits for what has been sent, or once more for what was reported: that ends no run, unless it
     * fails.
     */
    private void completeFirstHalf() {
        try {
            target.complete();
        } catch (RuntimeException | Error failure) {
            Run run = oldestSent();
            if (run != null) {
                fail(run, failure);
            }
            throw failure;
        }
    }

    private void fail(Run run, Throwable failure) {
        synchronized (open) {
            open.remove(run);
            hasOpen = !open.isEmpty();
        }
        tell(run, false, failure);
    }

    /** The oldest run whose second half is not enqueued, or null. */
    private Run oldestSent() {
        return receives ? oldest(run -> !run.received) : null;
    }

    /**
     * From here on streams wait for the oldest run and the host does not. It is reported with the
     * next run of the plan, when its time on the GPU is known.
     */
    void leave() {
        if (!hasOpen) {
            return; // called after each call: no garbage
        }
        synchronized (open) {
            Run run = oldest(each -> !each.left);
            if (run != null) {
                run.left = true;
            }
        }
    }

    /** The oldest run whose end the host may ask for, or null. */
    private Run takeOldest() {
        synchronized (open) {
            Run oldest = oldest(run -> !run.left && run.received == receives);
            open.remove(oldest);
            hasOpen = !open.isEmpty();
            return oldest;
        }
    }

    private Run oldest(Predicate<Run> which) {
        synchronized (open) {
            return open.stream().filter(which).findFirst().orElse(null);
        }
    }

    /** Reports runs whose end nobody asks for: left ones, and those that others replace. */
    private void tellSuperseded() {
        while (true) {
            Run oldest;
            synchronized (open) {
                boolean over = open.size() >= maxOpenRuns || (hasOpen && open.peek().left);
                oldest = over ? open.poll() : null;
                hasOpen = !open.isEmpty();
            }
            if (oldest == null) {
                return;
            }
            tell(oldest, false, null);
        }
    }

    private void tell(Run run, boolean finished, Throwable failure) {
        RecordedFacts facts = new RecordedFacts(observers.options().topology(), run.waits);
        long deviceNanos = RecordedFacts.UNKNOWN;
        try {
            if (failure != null) {
                target.describe(facts, false);
            } else {
                run.observation.describe(facts, finished);
                deviceNanos = run.received == receives ? run.deviceNanos() : RecordedFacts.UNKNOWN;
            }
        } catch (RuntimeException unmeasured) {
            observers.logOnce(this, unmeasured);
        }
        observers.tell(
                run.event,
                new ObservedCall(
                        kind,
                        observers.options().device(),
                        facts.facts(),
                        run.beginNanos,
                        run.completeNanos,
                        run.spanNanos,
                        deviceNanos,
                        finished,
                        failure));
    }

    /**
     * After a half: turns the totals from before it into what it added. Before the next half: turns
     * what was added into totals that are less by as much.
     */
    private void turnWaits(Run run) {
        long[] now = resources.waits();
        for (int peer = 0; now != null && peer < now.length; peer++) {
            run.waits[peer] = now[peer] - run.waits[peer];
        }
    }
}
