package io.deepep.buffer;

import io.deepep.Event;
import io.deepep.error.CapacityExceededException;
import io.deepep.error.RankMismatchException;
import io.deepep.error.RoutingException;
import io.deepep.host.HostStream;
import io.deepep.spi.CallOrderException;
import io.deepep.spi.Operation;

/**
 * An operation together with the buffer that prepared it: what a request keeps between calls. Notes
 * failures that leave the ranks out of step, after which the buffer refuses further calls.
 */
final class PlannedOperation<R> {
    private final RankBuffer owner;
    private final Operation<R> operation;
    private final boolean hooked;
    private final boolean fixedShape;
    private final Runnable hook;
    private final HostStream.Work beginWork = this::begin;
    private final HostStream.Work completeWork = this::complete;
    private final HostStream.Work wholeWork = this::runWhole;

    /**
     * Plans {@code operation}.
     *
     * @param hooked whether the caller asked to receive by hook
     * @param fixedShape whether the result is known without waiting for {@link Operation#begin}
     */
    PlannedOperation(RankBuffer owner, Operation<R> operation, boolean hooked, boolean fixedShape) {
        this.owner = owner;
        this.operation = operation;
        this.hooked = hooked;
        this.fixedShape = fixedShape;
        this.hook = hooked ? () -> owner.receive(this) : null;
    }

    Operation<R> operation() {
        return operation;
    }

    boolean belongsTo(RankBuffer buffer) {
        return owner == buffer;
    }

    boolean hooked() {
        return hooked;
    }

    boolean fixedShape() {
        return fixedShape;
    }

    /** {@link #begin} as an object made once, for streams. */
    HostStream.Work beginWork() {
        return beginWork;
    }

    /** {@link #complete} as an object made once. */
    HostStream.Work completeWork() {
        return completeWork;
    }

    /** Both halves as an object made once. */
    HostStream.Work wholeWork() {
        return wholeWork;
    }

    private void begin() {
        try {
            operation.begin();
        } catch (RoutingException
                | CapacityExceededException
                | RankMismatchException
                | CallOrderException
                | IllegalArgumentException agreed) {
            // Every rank learned of it, or nothing was sent: the ranks are still in step.
            throw agreed;
        } catch (RuntimeException | Error failure) {
            owner.fail(failure);
            throw failure;
        }
    }

    private void complete() {
        try {
            operation.complete();
        } catch (RoutingException
                | CapacityExceededException
                | RankMismatchException
                | CallOrderException agreed) {
            throw agreed;
        } catch (RuntimeException | Error failure) {
            owner.fail(failure);
            throw failure;
        }
    }

    private void runWhole() {
        begin();
        complete();
    }

    R result(Event event) {
        return operation.result(event, hook);
    }
}
