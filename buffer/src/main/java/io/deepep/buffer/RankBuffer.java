package io.deepep.buffer;

import io.deepep.Buffer;
import io.deepep.BufferOptions;
import io.deepep.CallOptions;
import io.deepep.CombineRequest;
import io.deepep.CombineResult;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchLayout;
import io.deepep.DispatchRequest;
import io.deepep.DispatchResult;
import io.deepep.Event;
import io.deepep.LowLatencyCombineRequest;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchRequest;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyHandle;
import io.deepep.Stream;
import io.deepep.Tensor;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.lowlatency.LowLatencyKernels;
import io.deepep.normal.NormalKernels;
import io.deepep.observe.CallKind;
import io.deepep.spi.Operation;
import io.deepep.spi.Request;
import java.util.Objects;

/**
 * One rank's buffer: keeps the life cycle and the plans of requests, and leaves protocol to the
 * kernels and ordering to the backend's {@link Resources}.
 */
final class RankBuffer implements Buffer {
    private final BufferOptions options;
    private final Resources resources;
    private final CallObservers observers;
    private volatile Throwable failure;
    private volatile boolean closed;

    RankBuffer(BufferOptions options, Resources resources) {
        this.options = options;
        this.resources = resources;
        this.observers = new CallObservers(options);
    }

    @Override
    public BufferOptions options() {
        return options;
    }

    @Override
    public DispatchLayout getDispatchLayout(
            Tensor topkIdx, int numExperts, CallOptions callOptions) {
        NormalKernels normal = normal();
        resources.await(Objects.requireNonNull(callOptions, "options"));
        return normal.layout(topkIdx, numExperts, Event.completed());
    }

    @Override
    public DispatchResult dispatch(DispatchRequest request, CallOptions callOptions) {
        NormalKernels normal = normal();
        PlannedOperation<DispatchResult> plan = planOf(request, callOptions);
        if (plan == null) {
            resources.requirePreparable(callOptions);
            RequestMemory memory = RequestMemory.of(request, resources.ownMemory());
            plan =
                    keep(
                            request,
                            memory,
                            normal.prepareDispatch(request),
                            CallKind.NORMAL_DISPATCH,
                            false,
                            request.numWorstTokens() > 0);
        }
        return run(plan, callOptions);
    }

    @Override
    public CombineResult combine(CombineRequest request, CallOptions callOptions) {
        NormalKernels normal = normal();
        PlannedOperation<CombineResult> plan = planOf(request, callOptions);
        if (plan == null) {
            resources.requirePreparable(callOptions);
            RequestMemory memory = RequestMemory.of(request, resources.ownMemory());
            plan =
                    keep(
                            request,
                            memory,
                            normal.prepareCombine(request),
                            CallKind.NORMAL_COMBINE,
                            false,
                            true);
        }
        return run(plan, callOptions);
    }

    @Override
    public Tensor getCombineBuffer(DispatchHandle handle) {
        return normal().combineBuffer(Objects.requireNonNull(handle, "handle"));
    }

    @Override
    public LowLatencyDispatchResult lowLatencyDispatch(
            LowLatencyDispatchRequest request, CallOptions callOptions) {
        LowLatencyKernels lowLatency = lowLatency();
        PlannedOperation<LowLatencyDispatchResult> plan = planOf(request, callOptions);
        if (plan == null) {
            resources.requirePreparable(callOptions);
            RequestMemory memory = RequestMemory.of(request, resources.ownMemory());
            plan =
                    keep(
                            request,
                            memory,
                            lowLatency.prepareDispatch(request),
                            CallKind.LOW_LATENCY_DISPATCH,
                            request.receiveHook(),
                            false);
        }
        return run(plan, callOptions);
    }

    @Override
    public LowLatencyCombineResult lowLatencyCombine(
            LowLatencyCombineRequest request, CallOptions callOptions) {
        LowLatencyKernels lowLatency = lowLatency();
        PlannedOperation<LowLatencyCombineResult> plan = planOf(request, callOptions);
        if (plan == null) {
            resources.requirePreparable(callOptions);
            RequestMemory memory = RequestMemory.of(request, resources.ownMemory());
            plan =
                    keep(
                            request,
                            memory,
                            lowLatency.prepareCombine(request),
                            CallKind.LOW_LATENCY_COMBINE,
                            request.receiveHook(),
                            false);
        }
        return run(plan, callOptions);
    }

    @Override
    public Tensor getLowLatencyCombineBuffer(LowLatencyHandle handle) {
        return lowLatency().combineBuffer(Objects.requireNonNull(handle, "handle"));
    }

    @Override
    public void cleanLowLatencyBuffer() {
        LowLatencyKernels lowLatency = lowLatency();
        resources.communicationStream().synchronize();
        lowLatency.quiet();
        options.communicator().barrier(options.timeout());
        lowLatency.reset();
        options.communicator().barrier(options.timeout());
    }

    @Override
    public void lowLatencyUpdateMask(int rank, boolean masked) {
        int numRanks = options.topology().numRanks();
        if (rank < 0 || rank >= numRanks) {
            throw new IllegalArgumentException(
                    "rank=" + rank + " is not in [0, numRanks=" + numRanks + ")");
        }
        if (masked && rank == options.topology().rank()) {
            throw new IllegalArgumentException(
                    "rank=" + rank + " is this rank; it cannot mask itself");
        }
        lowLatency().updateMask(rank, masked);
    }

    @Override
    public int[] lowLatencyQueryMask() {
        return lowLatency().queryMask();
    }

    @Override
    public void lowLatencyCleanMask() {
        LowLatencyKernels lowLatency = lowLatency();
        for (int rank = 0; rank < options.topology().numRanks(); rank++) {
            lowLatency.updateMask(rank, false);
        }
    }

    @Override
    public Stream communicationStream() {
        requireUsable();
        return resources.communicationStream();
    }

    @Override
    public Tensor getLocalBufferTensor(DType dtype, long numElements, long offset, boolean rdma) {
        requireUsable();
        if (offset % dtype.sizeBytes() != 0) {
            throw new IllegalArgumentException(
                    "offset="
                            + offset
                            + " is not a multiple of the "
                            + dtype.sizeBytes()
                            + " bytes of "
                            + dtype);
        }
        long capacity = rdma ? options.numRdmaBytes() : options.numNvlBytes();
        if (offset < 0
                || offset > capacity
                || numElements < 0
                || numElements > (capacity - offset) / dtype.sizeBytes()) {
            throw new IllegalArgumentException(
                    "offset="
                            + offset
                            + " with numElements="
                            + numElements
                            + " of "
                            + dtype
                            + " is not within the "
                            + capacity
                            + " bytes of the "
                            + (rdma ? "RDMA" : "NVL")
                            + " buffer");
        }
        return resources.localTensor(dtype, numElements, offset, rdma);
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            resources.close();
        }
    }

    /** Runs the receive half of a hook. */
    void receive(PlannedOperation<?> plan) {
        requireUsable();
        plan.memory().requireOutputsUsable();
        resources.receive(plan);
    }

    private <R> R run(PlannedOperation<R> plan, CallOptions callOptions) {
        plan.memory().requireUsable();
        return resources.run(plan, callOptions);
    }

    /** Notes a time-out, and returns it with the name of whom the group knows to be gone. */
    DeepEpTimeoutException fail(DeepEpTimeoutException late) {
        DeepEpTimeoutException named = late.blaming(options.communicator().departures());
        fail((Throwable) named);
        return named;
    }

    /** Notes a failure after which the ranks are out of step. */
    void fail(Throwable cause) {
        if (failure == null) {
            failure = cause;
        }
    }

    private NormalKernels normal() {
        requireUsable();
        return requireMode(resources.normal(), "normal");
    }

    private LowLatencyKernels lowLatency() {
        requireUsable();
        return requireMode(resources.lowLatency(), "lowLatency");
    }

    private static <K> K requireMode(K kernels, String mode) {
        if (kernels == null) {
            throw new IllegalStateException(
                    "the buffer was opened without "
                            + mode
                            + " limits; give Buffer.builder(...)."
                            + mode
                            + "(...)");
        }
        return kernels;
    }

    private void requireUsable() {
        if (closed) {
            throw new IllegalStateException(
                    "the buffer of rank " + options.topology().rank() + " is closed");
        }
        Throwable cause = failure;
        if (cause != null) {
            throw new IllegalStateException(
                    "the buffer of rank "
                            + options.topology().rank()
                            + " failed earlier; close it and open a new one: "
                            + cause.getMessage(),
                    cause);
        }
    }

    @SuppressWarnings(
            "unchecked") // a request's plan has the result type of the one method that takes the
    // request
    private <R> PlannedOperation<R> planOf(Request request, CallOptions callOptions) {
        Objects.requireNonNull(callOptions, "options");
        return Objects.requireNonNull(request, "request").plan() instanceof PlannedOperation<?> plan
                        && plan.belongsTo(this)
                ? (PlannedOperation<R>) plan
                : null;
    }

    private <R> PlannedOperation<R> keep(
            Request request,
            RequestMemory memory,
            Operation<R> operation,
            CallKind kind,
            boolean hooked,
            boolean fixedShape) {
        ObservedOperation<R> observed =
                new ObservedOperation<>(operation, kind, hooked, observers, resources);
        PlannedOperation<R> plan =
                new PlannedOperation<>(this, memory, operation, observed, hooked, fixedShape);
        request.plan(plan);
        return plan;
    }
}
