package io.deepep.buffer;

import io.deepep.Event;
import io.deepep.spi.CallFacts;
import io.deepep.spi.CallKind;
import io.deepep.spi.ObservedCall;
import io.deepep.spi.Operation;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * An operation whose runs observers are told of. The one place where calls are measured: both
 * backends run the halves of every operation through it, on whichever thread.
 */
final class ObservedOperation<R> implements Operation<R> {
    private final Operation<R> target;
    private final CallKind kind;
    private final CallObservers observers;
    private final Resources resources;
    private final int maxOpenRuns;

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
    }

    /** What is known of a run so far. */
    private static final class Run {
        private final OperationEvent event = new OperationEvent();
        private final long start = System.nanoTime();
        private final long[] waits;
        private final DeviceTimer.Span span;
        private long beginNanos;
        private long completeNanos;
        private long spanNanos;

        Run(long[] waits, DeviceTimer.Span span) {
            this.waits = waits;
            this.span = span;
            event.begin();
        }
    }

    @Override
    public void begin() {
        if (!hasOpen && !observers.any()) {
            target.begin();
            return;
        }
        tellSuperseded();
        // What a graph holds runs later, as often as it is replayed, and the host does not see it.
        if (!observers.any() || resources.isCapturing()) {
            target.begin();
            return;
        }
        Run run = new Run(resources.waits(), DeviceTimer.start(resources.timer()));
        try {
            target.begin();
        } catch (RuntimeException | Error failure) {
            run.beginNanos = System.nanoTime() - run.start;
            tell(run, false, failure);
            throw failure;
        }
        DeviceTimer.stop(run.span);
        turnWaits(run);
        run.beginNanos = System.nanoTime() - run.start;
        run.event.end();
        synchronized (open) {
            open.add(run);
            hasOpen = true;
        }
    }

    @Override
    public void complete() {
        Run run = hasOpen ? takeOldest() : null;
        if (run == null) {
            target.complete();
            return;
        }
        turnWaits(run);
        long start = System.nanoTime();
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

    private Run takeOldest() {
        synchronized (open) {
            Run run = open.poll();
            hasOpen = !open.isEmpty();
            return run;
        }
    }

    /** Tells of the run that another takes the place of: nobody asked for its end. */
    private void tellSuperseded() {
        while (true) {
            Run oldest;
            synchronized (open) {
                oldest = open.size() < maxOpenRuns ? null : open.poll();
                hasOpen = !open.isEmpty();
            }
            if (oldest == null) {
                return;
            }
            tell(oldest, false, null);
        }
    }

    private void tell(Run run, boolean finished, Throwable failure) {
        CallFacts facts = new CallFacts(observers.options().topology(), run.waits);
        target.describe(facts, finished);
        observers.tell(
                run.event,
                new ObservedCall(
                        kind,
                        observers.options().backend(),
                        facts,
                        run.beginNanos,
                        run.completeNanos,
                        run.spanNanos,
                        DeviceTimer.nanosOf(run.span),
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

    @Override
    public R result(Event event, Runnable receiveHook) {
        return target.result(event, receiveHook);
    }

    @Override
    public void describe(CallFacts facts, boolean completed) {
        target.describe(facts, completed);
    }
}
