package io.deepep.buffer;

import io.deepep.Buffer;
import io.deepep.BufferOptions;
import io.deepep.CallOptions;
import io.deepep.CombinePlan;
import io.deepep.CombineResult;
import io.deepep.DType;
import io.deepep.DispatchHandle;
import io.deepep.DispatchLayout;
import io.deepep.DispatchPlan;
import io.deepep.DispatchResult;
import io.deepep.Event;
import io.deepep.LowLatencyCombinePlan;
import io.deepep.LowLatencyCombineResult;
import io.deepep.LowLatencyDispatchPlan;
import io.deepep.LowLatencyDispatchResult;
import io.deepep.LowLatencyHandle;
import io.deepep.Plan;
import io.deepep.Stream;
import io.deepep.Tensor;
import io.deepep.error.DeepEpTimeoutException;
import io.deepep.lowlatency.LowLatencyKernels;
import io.deepep.normal.NormalKernels;
import io.deepep.observe.CallKind;
import io.deepep.spi.Operation;
import java.lang.ref.Reference;
import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.util.Objects;
import java.util.stream.IntStream;

/**
 * One rank's buffer: keeps the life cycle and the plans of plans, and leaves protocol to the
 * kernels and ordering to the backend's {@link Resources}.
 */
final class RankBuffer implements Buffer {
    private static final System.Logger LOG = System.getLogger(RankBuffer.class.getName());

    private final BufferOptions options;
    private final Resources resources;
    private final CallObservers observers;
    private volatile Throwable failure;
    private volatile boolean closed;

    /** Undoes {@link #closeAtEndOfGroup}. */
    private Runnable forgetEnd = () -> {};

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
    public DispatchResult dispatch(DispatchPlan plan, CallOptions callOptions) {
        NormalKernels normal = normal();
        PreparedOperation<DispatchResult> prepared = preparedOf(plan, callOptions);
        if (prepared == null) {
            resources.requirePreparable(callOptions);
            PlanMemory memory = PlanMemory.of(plan, resources.ownMemory());
            prepared =
                    keep(
                            plan,
                            memory,
                            normal.prepareDispatch(plan),
                            CallKind.NORMAL_DISPATCH,
                            false,
                            plan.numWorstTokens() > 0);
        }
        return run(prepared, callOptions);
    }

    @Override
    public CombineResult combine(CombinePlan plan, CallOptions callOptions) {
        NormalKernels normal = normal();
        PreparedOperation<CombineResult> prepared = preparedOf(plan, callOptions);
        if (prepared == null) {
            resources.requirePreparable(callOptions);
            PlanMemory memory = PlanMemory.of(plan, resources.ownMemory());
            prepared =
                    keep(
                            plan,
                            memory,
                            normal.prepareCombine(plan),
                            CallKind.NORMAL_COMBINE,
                            false,
                            true);
        }
        return run(prepared, callOptions);
    }

    @Override
    public Tensor getCombineBuffer(DispatchHandle handle) {
        return normal().combineBuffer(Objects.requireNonNull(handle, "handle"));
    }

    @Override
    public LowLatencyDispatchResult lowLatencyDispatch(
            LowLatencyDispatchPlan plan, CallOptions callOptions) {
        LowLatencyKernels lowLatency = lowLatency();
        PreparedOperation<LowLatencyDispatchResult> prepared = preparedOf(plan, callOptions);
        if (prepared == null) {
            resources.requirePreparable(callOptions);
            PlanMemory memory = PlanMemory.of(plan, resources.ownMemory());
            prepared =
                    keep(
                            plan,
                            memory,
                            lowLatency.prepareDispatch(plan),
                            CallKind.LOW_LATENCY_DISPATCH,
                            plan.receiveHook(),
                            false);
        }
        return run(prepared, callOptions);
    }

    @Override
    public LowLatencyCombineResult lowLatencyCombine(
            LowLatencyCombinePlan plan, CallOptions callOptions) {
        LowLatencyKernels lowLatency = lowLatency();
        PreparedOperation<LowLatencyCombineResult> prepared = preparedOf(plan, callOptions);
        if (prepared == null) {
            resources.requirePreparable(callOptions);
            PlanMemory memory = PlanMemory.of(plan, resources.ownMemory());
            prepared =
                    keep(
                            plan,
                            memory,
                            lowLatency.prepareCombine(plan),
                            CallKind.LOW_LATENCY_COMBINE,
                            plan.receiveHook(),
                            false);
        }
        return run(prepared, callOptions);
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
        resources.mendNetwork();
        options.communicator().barrier(options.timeout());
        lowLatency.reset();
        options.communicator().barrier(options.timeout());
    }

    @Override
    public void normalUpdateMask(int rank, boolean masked) {
        normal();
        requireMaskable(rank, masked);
        resources.communicationStream().synchronize();
        resources.updateMask(rank, masked);
    }

    @Override
    public int[] normalQueryMask() {
        int bits = normal().masked();
        return IntStream.range(0, options.topology().numRanks())
                .map(rank -> rank < Integer.SIZE ? bits >>> rank & 1 : 0)
                .toArray();
    }

    @Override
    public void normalRejoin() {
        NormalKernels normal = normal();
        resources.communicationStream().synchronize();
        byte[] mine = ByteBuffer.allocate(Integer.BYTES).putInt(normal.epoch()).array();
        int latest = normal.epoch();
        for (byte[] epoch : options.communicator().allGather(mine, options.timeout())) {
            int theirs = ByteBuffer.wrap(epoch).getInt();
            latest = theirs - latest > 0 ? theirs : latest;
        }
        normal.startAfter(latest);
        for (int rank = 0; rank < options.topology().numRanks(); rank++) {
            if (normalQueryMask()[rank] != 0) {
                resources.updateMask(rank, false);
            }
        }
        options.communicator().barrier(options.timeout());
    }

    @Override
    public void lowLatencyUpdateMask(int rank, boolean masked) {
        requireMaskable(rank, masked);
        lowLatency().updateMask(rank, masked);
    }

    private void requireMaskable(int rank, boolean masked) {
        int numRanks = options.topology().numRanks();
        if (rank < 0 || rank >= numRanks) {
            throw new IllegalArgumentException(
                    "rank=" + rank + " is not in [0, numRanks=" + numRanks + ")");
        }
        if (masked && rank == options.topology().rank()) {
            throw new IllegalArgumentException(
                    "rank=" + rank + " is this rank; it cannot mask itself");
        }
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
            closed = true;
        }
        forgetEnd.run();
        resources.close();
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
        forgetEnd = options.communicator().atEnd(abandon);
    }

    /** A rank that still runs may be in the middle of a call: what it uses is not taken away. */
    private void abandon(Thread opener) {
        if (closed) {
            return;
        }
        if (opener.isAlive() && !opener.equals(Thread.currentThread())) {
            LOG.log(
                    System.Logger.Level.WARNING,
                    "rank {0} still runs while its group closes; its buffer stays open",
                    options.topology().rank());
        } else {
            LOG.log(
                    System.Logger.Level.WARNING,
                    "rank {0} left its buffer open when its group closed; it is closed now",
                    options.topology().rank());
            close();
        }
    }

    Resources resources() {
        return resources;
    }

    /** Runs the receive half of a hook. */
    void receive(PreparedOperation<?> prepared) {
        requireUsable();
        prepared.memory().requireOutputsUsable();
        resources.receive(prepared);
    }

    private <R> R run(PreparedOperation<R> prepared, CallOptions callOptions) {
        prepared.memory().requireUsable();
        return resources.run(prepared, callOptions);
    }

    /** Notes a time-out, and returns it with the name of whom the group knows to be gone. */
    DeepEpTimeoutException fail(DeepEpTimeoutException late) {
        DeepEpTimeoutException named = late.blaming(resources.departures().list());
        resources.networkFailure().ifPresent(named::addSuppressed);
        if (!masksInstead(named)) {
            fail((Throwable) named);
        }
        return named;
    }

    /** Normal mode goes on without whom all others blame alike, from the next call on. */
    private boolean masksInstead(DeepEpTimeoutException late) {
        boolean masks =
                options.maskTimedOutRanks()
                        && options.normal() != null
                        && !options.topology().isInternode()
                        && late.peer() != options.topology().rank();
        if (masks) {
            resources.updateMask(late.peer(), true);
        }
        return masks;
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

    @SuppressWarnings("unchecked") // of the result type of the one method that takes the plan
    private <R> PreparedOperation<R> preparedOf(Plan plan, CallOptions callOptions) {
        Objects.requireNonNull(callOptions, "options");
        Object left = Objects.requireNonNull(plan, "plan").state().prepared();
        return left instanceof PreparedOperation<?> prepared && prepared.belongsTo(this)
                ? (PreparedOperation<R>) prepared
                : null;
    }

    private <R> PreparedOperation<R> keep(
            Plan plan,
            PlanMemory memory,
            Operation<R> operation,
            CallKind kind,
            boolean hooked,
            boolean fixedShape) {
        ObservedOperation<R> observed =
                new ObservedOperation<>(operation, kind, hooked, observers, resources);
        PreparedOperation<R> prepared =
                new PreparedOperation<>(this, memory, operation, observed, hooked, fixedShape);
        plan.state().prepared(prepared);
        return prepared;
    }
}
