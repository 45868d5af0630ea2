package io.deepep.buffer;

import io.deepep.CallOptions;
import io.deepep.Event;
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
    private final RankBuffer owner;
    private final Operation<R> operation;
    private final ObservedOperation<R> observed;
    private final boolean hooked;
    private final boolean fixedShape;
    private final Runnable hook;

    /** The end of the latest run on a GPU; null on the host. */
    private final DeviceEvent event;

    private final PlanMemory memory;

    /** Of the latest call, which its hook goes by. */
    private CallOptions options = CallOptions.sync();

    private final HostStream.Work beginWork = this::begin;
    private final HostStream.Work completeWork = this::complete;
    private final HostStream.Work wholeWork = this::runWhole;

    /** Events of the latest asynchronous run on the host, which the next uses again. */
    private HostEvent firstHalf;

    private HostEvent secondHalf;

    /**
     * Plans {@code operation}.
     *
     * @param memory that its plan names
     * @param observed the same, reported to observers
     * @param hooked whether the caller asked to receive by hook
     * @param fixedShape whether the result is known without waiting for {@link Operation#begin}
     */
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

    /** What its plan names. */
    PlanMemory memory() {
        return memory;
    }

    /** Streams wait for the GPU alone; the host also learns what went wrong there. */
    private record GpuEvent(DeviceEvent end, HostStream.Work complete) implements DeviceEvent {
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

    Operation<R> operation() {
        return operation;
    }

    /** The end of the latest run on a GPU; null on the host. */
    DeviceEvent event() {
        return event;
    }

    CallOptions options() {
        return options;
    }

    /** Notes the options of the call that begins. */
    void options(CallOptions latest) {
        this.options = latest;
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

    /** The second half will not run: this rank is out of step. */
    void leaveHalfDone(IllegalStateException interrupted) {
        owner.fail(interrupted);
    }

    /** Enqueues the second half of the oldest run that lacks it; on GPUs only. */
    void receive() {
        observed.receive();
    }

    /** Leaves the end of the run whose second half was enqueued last to streams. */
    void leave() {
        observed.leave();
    }

    private void begin() {
        try {
            observed.begin();
            // Where nobody asks for the end of calls, the next run of the plan learns of a refusal.
            owner.adoptMasks(observed.kind());
        } catch (RankMismatchException refused) {
            owner.adoptMasks(observed.kind());
            throw refused;
        } catch (RoutingException
                | CapacityExceededException
                | CallOrderException
                | IllegalArgumentException agreed) {
            // Every rank learned of it, or nothing was sent: the ranks are still in step.
            throw agreed;
        } catch (DeepEpTimeoutException late) {
            throw owner.fail(late, observed.kind());
        } catch (RuntimeException | Error failure) {
            owner.fail(failure);
            throw failure;
        }
    }

    private void complete() {
        try {
            observed.complete();
        } catch (RankMismatchException refused) {
            owner.adoptMasks(observed.kind());
            throw refused;
        } catch (RoutingException | CapacityExceededException | CallOrderException agreed) {
            throw agreed;
        } catch (DeepEpTimeoutException late) {
            throw owner.fail(late, observed.kind());
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
