package io.deepep.buffer;

import io.deepep.CallOptions;
import io.deepep.Event;
import io.deepep.Stream;
import io.deepep.cuda.CudaEvent;
import io.deepep.cuda.CudaOperation;
import io.deepep.cuda.DeviceEvent;
import io.deepep.error.CallOrderException;
import io.deepep.error.CapacityExceededException;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.RankMismatchException;
import io.deepep.error.RoutingException;
import io.deepep.host.HostEvent;
import io.deepep.host.HostStream;
import io.deepep.spi.Operation;

/**
 * An operation together with the buffer that prepared it: what a plan keeps between calls. Notes
 * failures that leave the ranks out of step, after which the buffer refuses further calls.
 */
final class PreparedOperation<R> {
    final RankBuffer owner;

    /** What its plan names. */
    final PlanMemory memory;

    final Operation<R> operation;

    /** The operation, reported to observers. */
    final ObservedOperation<R> observed;

    /** Whether the caller asked to receive by hook. */
    final boolean hooked;

    /** Whether the result is known without waiting for {@link Operation#begin}. */
    final boolean fixedShape;

    /** The end of the latest run on a GPU; null on the host. */
    final DeviceEvent event;

    /** Both halves, and one after the other, as objects that are made once. */
    final Runnable beginWork = this::begin;

    final Runnable completeWork = this::complete;
    final Runnable wholeWork = this::runWhole;

    /** Of the latest call, which its hook goes by. */
    CallOptions options = CallOptions.sync();

    private final Runnable hook;

    /** Events of the latest asynchronous run on the host, which the next uses again. */
    private HostEvent firstHalf;

    private HostEvent secondHalf;

    PreparedOperation(
            RankBuffer owner,
            PlanMemory memory,
            Operation<R> operation,
            ObservedOperation<R> observed,
            boolean hooked,
            boolean fixedShape) {
        this.owner = owner;
        this.memory = memory;
        this.operation = operation;
        this.observed = observed;
        this.hooked = hooked;
        this.fixedShape = fixedShape;
        this.hook = hooked ? () -> owner.receive(this) : null;
        this.event =
                operation instanceof CudaOperation<R> cuda
                        ? new GpuEvent(cuda.event(), completeWork)
                        : null;
    }

    /** Streams wait for the GPU alone; the host also learns what went wrong there. */
    private record GpuEvent(DeviceEvent end, Runnable complete) implements DeviceEvent {
        @Override
        public CudaEvent cudaEvent() {
            return end.cudaEvent();
        }

        @Override
        public boolean isDone() {
            return end.isDone();
        }

        @Override
        public void synchronize() {
            complete.run();
        }
    }

    /** {@link #begin} on the stream's thread; makes no garbage when made before. */
    HostEvent submitBegin(HostStream stream) {
        firstHalf = stream.submit(beginWork, firstHalf);
        return firstHalf;
    }

    /** {@link #complete} on the stream's thread. */
    HostEvent submitComplete(HostStream stream) {
        secondHalf = stream.submit(completeWork, secondHalf);
        return secondHalf;
    }

    /** Both halves on the stream's thread. */
    HostEvent submitWhole(HostStream stream) {
        secondHalf = stream.submit(wholeWork, secondHalf);
        return secondHalf;
    }

    private void begin() {
        try {
            observed.begin();
            // Where nobody asks for the end of calls, the next run of the plan learns of a refusal.
            owner.masks().adopt(observed.kind());
        } catch (IllegalArgumentException refused) {
            throw refused; // nothing was sent
        } catch (RuntimeException | Error failure) {
            note(failure);
            throw failure;
        }
    }

    private void complete() {
        try {
            observed.complete();
        } catch (RuntimeException | Error failure) {
            note(failure);
            throw failure;
        }
    }

    /** Enqueues the second half, on a GPU. */
    void receive() {
        try {
            observed.receive();
        } catch (RuntimeException | Error failure) {
            note(failure);
            throw failure;
        }
    }

    /** Has a stream wait for the end of a call that runs, on a GPU. */
    void hold(Stream compute) {
        try {
            compute.waitFor(event);
        } catch (RuntimeException | Error failure) {
            note(failure);
            throw failure;
        }
    }

    /**
     * Notes a failure, and throws what tells more of it where there is such. After a failure of
     * which every rank learned, or before anything was sent, all are in step.
     */
    private void note(Throwable failure) {
        switch (failure) {
            case DeepEpTimeoutException late -> throw owner.masks().fail(late, observed.kind());
            case RankMismatchException _ -> owner.masks().adopt(observed.kind());
            case RoutingException _, CapacityExceededException _, CallOrderException _ -> {}
            case IllegalStateException state -> {
                IllegalStateException explained = explained(state);
                owner.fail(explained);
                throw explained;
            }
            default -> owner.fail(failure);
        }
    }

    /**
     * Of memory that goes during a call, the JDK says only that it is "already closed"; a thread
     * that accesses it at that moment is interrupted as well.
     */
    private IllegalStateException explained(IllegalStateException failure) {
        try {
            memory.requireUsable();
            return failure;
        } catch (IllegalArgumentException gone) {
            return new IllegalStateException(gone.getMessage(), failure);
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
