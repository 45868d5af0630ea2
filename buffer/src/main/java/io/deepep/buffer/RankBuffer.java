package io.deepep.buffer;

import static io.deepep.observe.CallKind.LOW_LATENCY_COMBINE;
import static io.deepep.observe.CallKind.LOW_LATENCY_DISPATCH;
import static io.deepep.observe.CallKind.NORMAL_COMBINE;
import static io.deepep.observe.CallKind.NORMAL_DISPATCH;

import io.deepep.Buffer;
import io.deepep.BufferOptions;
import io.deepep.CallOptions;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.Communicator;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchLayout;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.EpTopology;
import io.deepep.Event;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyHandle;
import io.deepep.LowLatencyPlan;
import io.deepep.Plan;
import io.deepep.ScaledRows;
import io.deepep.Stream;
import io.deepep.Tensor;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.lowlatency.LowLatencyKernels;
import io.deepep.normal.NormalKernels;
import io.deepep.observe.CallKind;
import io.deepep.spi.Operation;
import java.lang.ref.Reference;
import java.lang.ref.WeakReference;
import java.util.Objects;
import java.util.function.BiFunction;

/**
 * One rank's buffer: keeps the life cycle and the plans of plans, and leaves protocol to the
 * kernels and ordering to the backend's {@link Resources}.
 */
final class RankBuffer implements Buffer {
    private static final System.Logger LOG = System.getLogger(RankBuffer.class.getName());

    private final BufferOptions options;
    private final Resources resources;
    private final Membership membership;
    private final CallObservers observers;
    private final OneThread oneThread;
    private final RankMasks masks;
    private volatile Throwable failure;
    private volatile boolean closed;

    /** Undoes {@link #closeAtEndOfGroup}. */
    private Runnable forgetEnd = () -> {};

    RankBuffer(BufferOptions options, Resources resources, Membership membership) {
        this.options = options;
        this.resources = resources;
        this.membership = membership;
        this.observers = new CallObservers(options);
        this.oneThread = new OneThread(options.topology().rank());
        this.masks = new RankMasks(options, resources, this::fail);
    }

    @Override
    public BufferOptions options() {
        return options;
    }

    @Override
    public DispatchLayout getDispatchLayout(
            Tensor topkIdx, int numExperts, CallOptions callOptions) {
        NormalKernels normal = normal();
        Thread before = enter();
        try {
            resources.await(Objects.requireNonNull(callOptions, "options"));
            return normal.layout(topkIdx, numExperts, Event.completed());
        } finally {
            oneThread.leave(before);
        }
    }

    @Override
    public DispatchResult dispatch(DispatchPlan plan, CallOptions callOptions) {
        return call(normal(), plan, callOptions, NORMAL_DISPATCH, NormalKernels::prepareDispatch);
    }

    @Override
    public CombineResult combine(CombinePlan plan, CallOptions callOptions) {
        return call(normal(), plan, callOptions, NORMAL_COMBINE, NormalKernels::prepareCombine);
    }

    @Override
    public Tensor getCombineBuffer(DispatchHandle handle) {
        return normal().combineBuffer(Objects.requireNonNull(handle, "handle"));
    }

    @Override
    public ScaledRows getFp8CombineBuffer(DispatchHandle handle) {
        return normal().fp8CombineBuffer(Objects.requireNonNull(handle, "handle"));
    }

    @Override
    public LowLatencyDispatchResult lowLatencyDispatch(
            LowLatencyDispatchPlan plan, CallOptions callOptions) {
        return call(
                lowLatency(),
                plan,
                callOptions,
                LOW_LATENCY_DISPATCH,
                LowLatencyKernels::prepareDispatch);
    }

    @Override
    public LowLatencyCombineResult lowLatencyCombine(
            LowLatencyCombinePlan plan, CallOptions callOptions) {
        return call(
                lowLatency(),
                plan,
                callOptions,
                LOW_LATENCY_COMBINE,
                LowLatencyKernels::prepareCombine);
    }

    @Override
    public Tensor getLowLatencyCombineBuffer(LowLatencyHandle handle) {
        return lowLatency().combineBuffer(Objects.requireNonNull(handle, "handle"));
    }

    @Override
    public void cleanLowLatencyBuffer() {
        meet(
                "clean its low-latency buffer",
                () -> {
                    LowLatencyKernels lowLatency = lowLatency();
                    resources.becomeIdle();
                    lowLatency.quiet();
                    resources.mendNetwork();
                    membership.meetToClean();
                    lowLatency.reset();
                    membership.group().barrier(options.meetingTimeout());
                });
    }

    /**
     * Time-outs of what all ranks do together outside calls name it. The steps begin with what a
     * closed buffer refuses: another thread may have closed it until then.
     */
    private void meet(String what, Runnable steps) {
        Thread before = oneThread.enter();
        try {
            steps.run();
        } catch (DeepEpTimeoutException late) {
            throw late.inMeeting(what);
        } finally {
            oneThread.leave(before);
        }
    }

    @Override
    public void updateMask(int rank, boolean masked) {
        requireUsable();
        requireMaskable(rank, masked);
        Thread before = enter();
        try {
            resources.becomeIdle();
            masks.update(rank, masked);
        } finally {
            oneThread.leave(before);
        }
    }

    @Override
    public int[] queryMask() {
        synchronized (masks) {
            requireUsable();
            return membership.queryMask();
        }
    }

    @Override
    public void rejoin() {
        meet(
                "rejoin",
                () -> {
                    requireUsable();
                    membership.rejoin();
                });
    }

    @Override
    public void admit(Communicator group) {
        Objects.requireNonNull(group, "group");
        meet("join or admit", () -> membership.admit(group, this::requireUsable));
        forgetEnd.run();
        closeAtEndOfGroup();
    }

    private void requireMaskable(int rank, boolean masked) {
        EpTopology place = options.topology().withRank(rank); // refuses a rank out of range
        if (masked && place.equals(options.topology())) {
            throw new IllegalArgumentException(
                    "rank=" + rank + " is this rank; it cannot mask itself");
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
        Objects.requireNonNull(dtype, "dtype");
        if (offset % dtype.sizeBytes() != 0) {
            throw new IllegalArgumentException(
                    "offset=%s is not a multiple of the %s bytes of %s"
                            .formatted(offset, dtype.sizeBytes(), dtype));
        }
        long capacity = rdma ? options.numRdmaBytes() : options.numNvlBytes();
        if (offset < 0
                || offset > capacity
                || numElements < 0
                || numElements > (capacity - offset) / dtype.sizeBytes()) {
            throw new IllegalArgumentException(
                    "offset=%s with numElements=%s of %s is not within the %s bytes of the %s buffer"
                            .formatted(
                                    offset, numElements, dtype, capacity, rdma ? "RDMA" : "NVL"));
        }
        return resources.localTensor(dtype, numElements, offset, rdma);
    }

    @Override
    public void close() {
        synchronized (this) {
            if (closed) {
                return;
            }
            if (oneThread.isInside() || resources.isInCall() || CallObservers.isTelling()) {
                throw new IllegalStateException(
                        "the buffer of rank %s cannot be closed within its own call, or by an observer; close it after the call"
                                .formatted(options.topology().rank()));
            }
            resources.requireNoCapture();
            closed = true;
        }
        forgetEnd.run();
        // A call on another thread may be between two of its steps, all of which need the memory.
        oneThread.enterLast();
        try {
            masks.end();
            resources.close();
        } finally {
            oneThread.leave(null);
        }
    }

    /**
     * Closes this buffer with its group if the rank has not and the calling thread, which is the
     * rank's, has ended. Host memory goes also when nobody can reach the buffer any more, which
     * this must not prevent; device memory does not, because a captured graph may still use it.
     */
    void closeAtEndOfGroup() {
        Thread opener = Thread.currentThread();
        Reference<RankBuffer> weak = new WeakReference<>(this);
        Runnable abandon =
                options.device().isHost()
                        ? () -> {
                            RankBuffer left = weak.get();
                            if (left != null) {
                                left.abandon(opener);
                            }
                        }
                        : () -> abandon(opener);
        forgetEnd = membership.group().atEnd(abandon);
    }

    /** A rank that still runs may be in the middle of a call: what it uses is not taken away. */
    private void abandon(Thread opener) {
        if (closed) {
            return;
        }
        boolean running = opener.isAlive() && !opener.equals(Thread.currentThread());
        LOG.log(
                System.Logger.Level.WARNING,
                running
                        ? "rank {0} is still running while its group closes; its buffer stays open"
                        : "rank {0} left its buffer open when its group closed; it is closed now",
                options.topology().rank());
        if (!running) {
            close();
        }
    }

    Resources resources() {
        return resources;
    }

    RankMasks masks() {
        return masks;
    }

    /** Runs the receive half of a hook. */
    void receive(PreparedOperation<?> prepared) {
        requireUsable();
        Thread before = enter();
        try {
            prepared.memory.requireLateUsable();
            resources.receive(prepared);
        } finally {
            oneThread.leave(before);
        }
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
                    "the buffer was opened without %s limits; give Buffer.builder(...).%s(...)"
                            .formatted(mode, mode));
        }
        return kernels;
    }

    /** {@link OneThread#enter}, unless another thread has closed the buffer just before. */
    private Thread enter() {
        Thread before = oneThread.enter();
        if (closed) {
            oneThread.leave(before);
            requireUsable();
        }
        return before;
    }

    private void requireUsable() {
        if (closed) {
            throw new IllegalStateException(
                    "the buffer of rank " + options.topology().rank() + " is closed");
        }
        Throwable cause = failure;
        if (cause != null) {
            throw new IllegalStateException(
                    "the buffer of rank %s failed earlier; close it and open a new one: %s"
                            .formatted(options.topology().rank(), cause.getMessage()),
                    cause);
        }
    }

    /** Runs what an earlier call has prepared, or prepares it first. */
    private <K, P extends Plan, R> R call(
            K kernels,
            P plan,
            CallOptions callOptions,
            CallKind kind,
            BiFunction<K, P, Operation<R>> prepare) {
        Thread before = enter();
        try {
            PreparedOperation<R> prepared = preparedOf(plan, callOptions);
            if (prepared == null) {
                resources.requirePreparable(callOptions);
                PlanMemory memory = PlanMemory.of(plan, resources.ownMemory());
                prepared = keep(plan, memory, prepare.apply(kernels, plan), kind);
            }
            prepared.memory.requireUsable();
            return resources.run(prepared, callOptions);
        } finally {
            oneThread.leave(before);
        }
    }

    @SuppressWarnings("unchecked") // of the result type of the one method that takes the plan
    private <R> PreparedOperation<R> preparedOf(Plan plan, CallOptions callOptions) {
        Objects.requireNonNull(callOptions, "options");
        Object left = Objects.requireNonNull(plan, "plan").state().prepared();
        return left instanceof PreparedOperation<?> prepared && prepared.owner == this
                ? (PreparedOperation<R>) prepared
                : null;
    }

    private <R> PreparedOperation<R> keep(
            Plan plan, PlanMemory memory, Operation<R> operation, CallKind kind) {
        boolean hooked = plan instanceof LowLatencyPlan lowLatency && lowLatency.receiveHook();
        boolean fixedShape =
                plan instanceof DispatchPlan dispatch
                        ? dispatch.numWorstTokens() > 0
                        : plan instanceof CombinePlan;
        ObservedOperation<R> observed =
                new ObservedOperation<>(operation, kind, hooked, observers, resources);
        PreparedOperation<R> prepared =
                new PreparedOperation<>(this, memory, operation, observed, hooked, fixedShape);
        plan.state().prepared(prepared);
        return prepared;
    }
}
