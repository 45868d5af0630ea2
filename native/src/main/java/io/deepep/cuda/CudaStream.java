package io.deepep.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.Device;
import io.deepep.Event;
import io.deepep.Stream;
import io.deepep.cuda.driver.CallSlots;
import io.deepep.cuda.driver.CuCall;
import io.deepep.cuda.driver.CuError;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A GPU's queue of work. Everything here only enqueues and returns, except {@link #synchronize()}
 * and {@link #synchronizeReplays()}. Addresses are device addresses, or those of page-locked host
 * memory; the memory must stay until the work is done.
 */
public final class CudaStream implements Stream, AutoCloseable {
    private static final int NON_BLOCKING = 1;
    private static final int WAIT_GREATER_OR_EQUAL = 0;
    private static final int CAPTURE_THREAD_LOCAL = 1;
    private static final int CAPTURE_NONE = 0;
    private static final int CAPTURE_ACTIVE = 1;
    private static final int RECORD_EXTERNAL = 1;

    /** Of {@code CUdevResource}, which later drivers may enlarge. */
    private static final long RESOURCE_BYTES = 256;

    private static final long RESOURCE_NUM_SMS = 96;
    private static final int RESOURCE_SMS = 1;

    /** The legacy and the per-thread default stream, which every context has. */
    private static final long LAST_DEFAULT_STREAM = 2;

    private static final CuCall CREATE =
            CuCall.of("cuStreamCreateWithPriority", ADDRESS, JAVA_INT, JAVA_INT);
    private static final CuCall DESTROY = CuCall.of("cuStreamDestroy_v2", JAVA_LONG);
    private static final CuCall GET_CONTEXTS =
            CuCall.of("cuStreamGetCtx_v2", JAVA_LONG, ADDRESS, ADDRESS);
    private static final CuCall GET_RESOURCE =
            CuCall.of("cuGreenCtxGetDevResource", JAVA_LONG, ADDRESS, JAVA_INT);
    private static final CuCall SYNCHRONIZE = CuCall.of("cuStreamSynchronize", JAVA_LONG);
    private static final CuCall QUERY =
            CuCall.of("cuStreamQuery", JAVA_LONG).tolerating(CuError.NOT_READY);
    private static final CuCall EVENT_RECORD = CuCall.of("cuEventRecord", JAVA_LONG, JAVA_LONG);
    private static final CuCall EVENT_RECORD_WITH_FLAGS =
            CuCall.of("cuEventRecordWithFlags", JAVA_LONG, JAVA_LONG, JAVA_INT);
    private static final CuCall WAIT_EVENT =
            CuCall.of("cuStreamWaitEvent", JAVA_LONG, JAVA_LONG, JAVA_INT);
    private static final CuCall COPY =
            CuCall.of("cuMemcpyAsync", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
    private static final CuCall FILL_BYTES =
            CuCall.of("cuMemsetD8Async", JAVA_LONG, JAVA_BYTE, JAVA_LONG, JAVA_LONG);
    private static final CuCall FILL_INTS =
            CuCall.of("cuMemsetD32Async", JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG);
    private static final CuCall WRITE_INT =
            CuCall.of("cuStreamWriteValue32_v2", JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT);
    private static final CuCall WAIT_INT =
            CuCall.of("cuStreamWaitValue32_v2", JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT);
    private static final CuCall BEGIN_CAPTURE =
            CuCall.of("cuStreamBeginCapture_v2", JAVA_LONG, JAVA_INT);
    private static final CuCall END_CAPTURE = CuCall.of("cuStreamEndCapture", JAVA_LONG, ADDRESS);
    private static final CuCall IS_CAPTURING = CuCall.of("cuStreamIsCapturing", JAVA_LONG, ADDRESS);
    private static final CuCall CAPTURE_INFO =
            CuCall.of(
                    "cuStreamGetCaptureInfo_v2",
                    JAVA_LONG,
                    ADDRESS,
                    ADDRESS,
                    JAVA_LONG,
                    JAVA_LONG,
                    JAVA_LONG);

    private final CudaContext context;
    private final long handle;
    private final boolean owned;
    private final AtomicBoolean closed = new AtomicBoolean();

    /** Threads that the driver holds until its work is done; guarded by this. */
    private int waiting;

    /** What went into graphs; the events outlive their owners, whose replays may still run. */
    private final List<Replayed> replayed = new ArrayList<>();

    private record Replayed(WeakReference<Object> owner, CudaEvent end) {}

    private CudaStream(CudaContext context, long handle, boolean owned) {
        this.context = context;
        this.handle = handle;
        this.owned = owned;
    }

    /** A stream of ordinary priority that does not wait for the legacy default stream. */
    public static CudaStream create(CudaContext context) {
        return create(context, 0);
    }

    /**
     * A stream that does not wait for the legacy default stream.
     *
     * @param priority lower is sooner; the driver clamps numbers outside of its range, of which
     *     {@link CudaContext#greatestStreamPriority()} is one end
     */
    public static CudaStream create(CudaContext context, int priority) {
        context.makeCurrent();
        return new CudaStream(context, CREATE.ask(NON_BLOCKING, priority), true);
    }

    /**
     * A stream that another library made, such as an engine's. Closing this object leaves it alone.
     *
     * @param handle its {@code CUstream} or {@code cudaStream_t}; 0 is the legacy default stream.
     *     It may belong to a green context, a part of the GPU
     * @throws IllegalArgumentException if the stream belongs to another context or another GPU
     */
    public static CudaStream wrap(CudaContext context, long handle) {
        if (isDefault(handle) && context.isReplaced()) {
            throw new IllegalArgumentException(
                    ("stream %s is a default stream, but the context that is current on this thread is not the primary one of"
                                    + " %s; make that current (cudaSetDevice), or create a stream and pass its handle")
                            .formatted(handle, context.device()));
        }
        context.makeCurrent();
        if (!isDefault(handle)) {
            GET_CONTEXTS.call(handle, CallSlots.first(), CallSlots.second());
            if (CallSlots.asLong(CallSlots.first()) != context.handle()) {
                throw new IllegalArgumentException(
                        ("stream %s does not belong to the primary context of %s; create it after cudaSetDevice, or"
                                        + " in the context of cuDevicePrimaryCtxRetain instead of cuCtxCreate")
                                .formatted(Long.toHexString(handle), context.device()));
            }
        }
        return new CudaStream(context, handle, false);
    }

    /** Multiprocessors that its work may use: those of the GPU, or of its green context. */
    public int numSms() {
        long greenContext = 0;
        if (!isDefault()) {
            context.makeCurrent();
            GET_CONTEXTS.call(handle(), CallSlots.first(), CallSlots.second());
            greenContext = CallSlots.asLong(CallSlots.second());
        }
        return greenContext == 0 ? context.cudaDevice().numSms() : numSmsOf(greenContext);
    }

    private static int numSmsOf(long greenContext) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment resource = arena.allocate(RESOURCE_BYTES);
            GET_RESOURCE.invoke(greenContext, resource, RESOURCE_SMS);
            return resource.get(JAVA_INT, RESOURCE_NUM_SMS);
        }
    }

    /** The context it belongs to. */
    public CudaContext context() {
        return context;
    }

    @Override
    public long cudaHandle() {
        return handle();
    }

    @Override
    public Device device() {
        return context.device();
    }

    /** The driver's {@code CUstream}. */
    public long handle() {
        if (closed.get()) {
            throw new IllegalStateException("stream of " + context.device() + " is closed");
        }
        return handle;
    }

    /**
     * A new event at the present end; {@link #record(CudaEvent)} reuses one and allocates nothing.
     */
    @Override
    public CudaEvent record() {
        CudaEvent event = CudaEvent.create(context);
        record(event);
        return event;
    }

    /** Marks the present end of the stream with an event of the same context. */
    public void record(CudaEvent event) {
        context.makeCurrent();
        EVENT_RECORD.call(event.handle(), handle());
    }

    /**
     * In a capture: has every replay of the graph record the event, so that it tells the end of the
     * replay launched last. Work in the graph cannot wait for it; {@link #record(CudaEvent)} is for
     * that.
     *
     * @param owner reachable as long as the graph may be launched
     */
    void recordEveryReplay(CudaEvent event, Object owner) {
        context.makeCurrent();
        EVENT_RECORD_WITH_FLAGS.call(event.handle(), handle(), RECORD_EXTERNAL);
        synchronized (replayed) {
            replayed.removeIf(r -> r.owner().refersTo(null) || r.owner().refersTo(owner));
            replayed.add(new Replayed(new WeakReference<>(owner), event));
        }
    }

    /**
     * Waits for the latest replays of graphs that work of this stream went into, whichever stream
     * they were launched on.
     */
    public void synchronizeReplays() {
        List<Replayed> all;
        synchronized (replayed) {
            all = List.copyOf(replayed);
        }
        all.forEach(r -> r.end().synchronize());
    }

    /**
     * {@inheritDoc}
     *
     * @throws IllegalArgumentException if the event is neither done nor a {@link DeviceEvent}
     */
    @Override
    public void waitFor(Event event) {
        if (event instanceof DeviceEvent deviceEvent) {
            CudaEvent awaited = deviceEvent.cudaEvent();
            context.makeCurrent(); // the event may have made its own so
            try {
                WAIT_EVENT.call(handle(), awaited.handle(), 0);
            } finally {
                Reference.reachabilityFence(awaited);
            }
        } else if (!event.isDone()) {
            throw new IllegalArgumentException(
                    "event of %s is not an event on a GPU; call its synchronize() first"
                            .formatted(event.getClass().getName()));
        }
    }

    @Override
    public void synchronize() {
        handle();
        awaitEnd();
    }

    /** {@link #synchronize}, but of a closed stream everything is done. */
    public void awaitEnd() {
        if (VirtualThreads.isOne()) {
            VirtualThreads.await(this::isOver);
        }
        synchronized (this) {
            if (isClosed()) {
                return;
            }
            waiting++;
        }
        try {
            context.makeCurrent();
            SYNCHRONIZE.call(handle);
        } finally {
            synchronized (this) {
                waiting--;
                destroyOnceUnused();
            }
        }
    }

    private synchronized boolean isOver() {
        return isClosed() || isDone();
    }

    private boolean isDone() {
        context.makeCurrent();
        return QUERY.call(handle()) == CuError.SUCCESS;
    }

    /** Whether it is one of the default streams, which all threads of a context have in common. */
    public boolean isDefault() {
        return isDefault(handle);
    }

    private static boolean isDefault(long handle) {
        return Long.compareUnsigned(handle, LAST_DEFAULT_STREAM) <= 0;
    }

    /** Whether {@link #close} was called. */
    public boolean isClosed() {
        return closed.get();
    }

    /**
     * Whether all work so far has finished; false while work goes into a graph, true once closed.
     * Another rank may ask while this one closes the stream.
     */
    public synchronized boolean isIdle() {
        if (isClosed()) {
            return true;
        }
        return !isCapturing() && isDone(); // asking would spoil a capture
    }

    /** Copies between any two addresses, which the driver knows by themselves. */
    public void copy(long target, long source, long numBytes) {
        context.makeCurrent();
        COPY.call(target, source, numBytes, handle());
    }

    /** Sets every byte. */
    public void fillBytes(long target, byte value, long numBytes) {
        context.makeCurrent();
        FILL_BYTES.call(target, value, numBytes, handle());
    }

    /** Sets every 32-bit word; {@code target} is a multiple of 4. */
    public void fillInts(long target, int value, long numInts) {
        context.makeCurrent();
        FILL_INTS.call(target, value, numInts, handle());
    }

    /** Stores a word after all work so far, visible to the host and to peers in that order. */
    public void writeInt(long target, int value) {
        context.makeCurrent();
        WRITE_INT.call(handle(), target, value, 0);
    }

    /**
     * Holds later work until the word has reached {@code value}, compared by the sign of the
     * difference.
     */
    public void waitForInt(long address, int value) {
        context.makeCurrent();
        WAIT_INT.call(handle(), address, value, WAIT_GREATER_OR_EQUAL);
    }

    /** Whether work goes into a graph instead of running. */
    public boolean isCapturing() {
        context.makeCurrent();
        IS_CAPTURING.call(handle(), CallSlots.first());
        return CallSlots.asInt(CallSlots.first()) != CAPTURE_NONE;
    }

    /**
     * The number of the capture that work goes into, which no other one has had; 0 if work runs, or
     * if the capture has become invalid.
     */
    public long capture() {
        if (!isCapturing()) {
            return 0;
        }
        CAPTURE_INFO.invoke(handle(), CallSlots.first(), CallSlots.second(), 0, 0, 0);
        boolean active = CallSlots.asInt(CallSlots.first()) == CAPTURE_ACTIVE;
        return active ? CallSlots.asLong(CallSlots.second()) : 0;
    }

    /** {@inheritDoc} Thread-local, so that other ranks' threads may allocate meanwhile. */
    @Override
    public synchronized void beginCapture() {
        context.makeCurrent();
        BEGIN_CAPTURE.call(handle(), CAPTURE_THREAD_LOCAL);
    }

    @Override
    public CudaGraph endCapture() {
        context.makeCurrent();
        END_CAPTURE.call(handle(), CallSlots.first());
        return CudaGraph.of(this, CallSlots.asLong(CallSlots.first()));
    }

    /**
     * Destroys the stream once its work is done, without waiting; a wrapped one stays. Idempotent.
     */
    @Override
    public synchronized void close() {
        if (closed.compareAndSet(false, true)) {
            destroyOnceUnused();
        }
    }

    /** Not while the driver still looks at it for a thread that waits: the last one does it. */
    private void destroyOnceUnused() {
        if (isClosed() && waiting == 0 && owned) {
            context.makeCurrent();
            DESTROY.call(handle);
        }
    }
}
