package io.deepep.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.driver.CallSlots;
import io.deepep.cuda.driver.CuCall;
import io.deepep.cuda.driver.CuError;
import io.deepep.error.NativeCallException;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A point in a stream's work. Can be recorded again and again; a wait concerns the latest record
 * before it. Close it, or leave that to the garbage collector.
 */
public final class CudaEvent implements DeviceEvent, AutoCloseable {
    private static final int DISABLE_TIMING = 2;
    private static final Cleaner CLEANER = Cleaner.create();

    private static final CuCall CREATE = CuCall.of("cuEventCreate", ADDRESS, JAVA_INT);
    private static final CuCall DESTROY = CuCall.of("cuEventDestroy_v2", JAVA_LONG);
    private static final CuCall QUERY =
            CuCall.of("cuEventQuery", JAVA_LONG).tolerating(CuError.NOT_READY);
    private static final CuCall SYNCHRONIZE = CuCall.of("cuEventSynchronize", JAVA_LONG);
    private static final CuCall ELAPSED_TIME =
            CuCall.of("cuEventElapsedTime", ADDRESS, JAVA_LONG, JAVA_LONG);

    /** What the collector closes; knows nothing of the event object. */
    private record Owned(CudaContext context, long handle, boolean foreign, AtomicBoolean closed)
            implements Runnable {
        @Override
        public void run() {
            // A closed context may be gone, and its events with it.
            if (closed.compareAndSet(false, true) && !foreign && !context.isClosed()) {
                context.makeCurrent();
                DESTROY.call(handle);
            }
        }
    }

    private final Owned owned;
    private final Cleaner.Cleanable cleanable;

    private CudaEvent(CudaContext context, long handle, boolean foreign) {
        this.owned = new Owned(context, handle, foreign, new AtomicBoolean());
        this.cleanable = CLEANER.register(this, owned);
    }

    /** An event for ordering; the cheapest kind. */
    public static CudaEvent create(CudaContext context) {
        return create(context, DISABLE_TIMING);
    }

    /** An event for {@link #elapsedMicros}. */
    public static CudaEvent createTiming(CudaContext context) {
        return create(context, 0);
    }

    /**
     * An event that another library made, such as an engine's. Closing this object leaves it alone;
     * the engine keeps it as long as this object is used.
     *
     * @param handle its {@code CUevent} or {@code cudaEvent_t}
     */
    public static CudaEvent wrap(CudaContext context, long handle) {
        if (handle == 0) {
            throw new IllegalArgumentException("handle=0 is not an event; create the event first");
        }
        return new CudaEvent(context, handle, true);
    }

    private static CudaEvent create(CudaContext context, int flags) {
        context.makeCurrent();
        CREATE.call(CallSlots.first(), flags); // engines make one for every call
        return new CudaEvent(context, CallSlots.asLong(CallSlots.first()), false);
    }

    /** The driver's {@code CUevent}. */
    public long handle() {
        if (owned.closed.get()) {
            throw new IllegalStateException("the event is closed");
        }
        return owned.handle;
    }

    @Override
    public CudaEvent cudaEvent() {
        return this;
    }

    @Override
    public boolean isDone() {
        owned.context.makeCurrent();
        try {
            return QUERY.call(handle()) == CuError.SUCCESS;
        } catch (NativeCallException e) {
            if (e.isFatal()) {
                return true; // nothing will run any more; synchronize() says why
            }
            throw e;
        } finally {
            Reference.reachabilityFence(this); // or the cleaner could destroy it meanwhile
        }
    }

    @Override
    public void synchronize() {
        if (VirtualThreads.isOne()) {
            VirtualThreads.await(this::isDone);
        }
        owned.context.makeCurrent();
        try {
            SYNCHRONIZE.call(handle());
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Microseconds of GPU time from {@code start} to this event; both were made for timing and are
     * done.
     */
    public double elapsedMicros(CudaEvent start) {
        owned.context.makeCurrent();
        try {
            ELAPSED_TIME.call(CallSlots.first(), start.handle(), handle());
        } finally {
            Reference.reachabilityFence(start);
            Reference.reachabilityFence(this);
        }
        return CallSlots.first().get(JAVA_FLOAT, 0) * 1000.0;
    }

    /** Destroys the event; work that waits for it goes on as recorded. Idempotent. */
    @Override
    public void close() {
        cleanable.clean();
    }
}
