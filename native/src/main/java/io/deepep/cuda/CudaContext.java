package io.deepep.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.Device;
import io.deepep.cuda.driver.CallSlots;
import io.deepep.cuda.driver.CuCall;
import io.deepep.cuda.driver.CuError;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A GPU's primary context, the one that CUDA runtime users of this process (libtorch, JCuda) share.
 * Retained until closed; close it after everything made in it.
 *
 * <p>The driver keeps a current context per OS thread. Everything in this package makes its context
 * current itself, so callers need not, and any thread may call. It stays current afterwards.
 */
public final class CudaContext implements AutoCloseable {
    private static final CuCall PRIMARY_RETAIN =
            CuCall.of("cuDevicePrimaryCtxRetain", ADDRESS, JAVA_INT);
    private static final CuCall PRIMARY_RELEASE =
            CuCall.of("cuDevicePrimaryCtxRelease_v2", JAVA_INT);
    private static final CuCall GET_CURRENT = CuCall.critical("cuCtxGetCurrent", ADDRESS);
    private static final CuCall SET_CURRENT = CuCall.of("cuCtxSetCurrent", JAVA_LONG);
    private static final CuCall GET_DEVICE = CuCall.of("cuCtxGetDevice", ADDRESS);
    private static final CuCall SYNCHRONIZE = CuCall.of("cuCtxSynchronize");
    private static final CuCall PRIORITY_RANGE =
            CuCall.of("cuCtxGetStreamPriorityRange", ADDRESS, ADDRESS);
    private static final CuCall MEM_GET_INFO = CuCall.of("cuMemGetInfo_v2", ADDRESS, ADDRESS);

    private static final Map<Integer, CudaContext> SHARED = new ConcurrentHashMap<>();

    private final CudaDevice cudaDevice;
    private final Device device;
    private final long handle;
    private final boolean shared;
    private final AtomicBoolean closed = new AtomicBoolean();

    private CudaContext(CudaDevice cudaDevice, long handle, boolean shared) {
        this.cudaDevice = cudaDevice;
        this.device = cudaDevice.device();
        this.handle = handle;
        this.shared = shared;
    }

    /** Retains the primary context of a GPU and makes it current on this thread. */
    public static CudaContext retain(CudaDevice cudaDevice) {
        return retain(cudaDevice, false);
    }

    /**
     * The primary context of a GPU as this process keeps it until it ends: one object, which {@link
     * #close} leaves alone. For what outlives the buffer that made it, such as memory that the
     * garbage collector returns.
     */
    public static CudaContext shared(CudaDevice cudaDevice) {
        return shared(cudaDevice.ordinal());
    }

    static CudaContext shared(int ordinal) {
        return SHARED.computeIfAbsent(ordinal, index -> retain(CudaDevice.of(index), true));
    }

    private static CudaContext retain(CudaDevice cudaDevice, boolean shared) {
        CudaDriver.ensureAvailable();
        try {
            long handle = PRIMARY_RETAIN.ask(cudaDevice.ordinal());
            CudaContext context = new CudaContext(cudaDevice, handle, shared);
            try {
                context.makeCurrent();
            } catch (RuntimeException | Error failure) {
                PRIMARY_RELEASE.call(cudaDevice.ordinal());
                throw failure;
            }
            return context;
        } catch (NativeCallException failure) {
            throw withCure(failure, cudaDevice.ordinal());
        }
    }

    /** MPS says of its queues what it says of memory: that there is none left. */
    static RuntimeException withCure(NativeCallException failure, int ordinal) {
        if (failure.code() != CuError.OUT_OF_MEMORY) {
            return failure;
        }
        return new DeepEpUnavailableException(
                "cuda:%d has no room for this process: %s".formatted(ordinal, failure.getMessage()),
                "free memory on the GPU; if more than three processes share it through MPS, set"
                        + " CUDA_DEVICE_MAX_CONNECTIONS=8 for all of them",
                failure);
    }

    /** The GPU. */
    public CudaDevice cudaDevice() {
        return cudaDevice;
    }

    /** The GPU as the API names it. */
    public Device device() {
        return device;
    }

    public boolean isClosed() {
        return closed.get();
    }

    /** The driver's {@code CUcontext}. */
    public long handle() {
        return handle;
    }

    /**
     * Makes this context current on the calling thread. A few nanoseconds if it is: the driver is
     * asked rather than a copy of ours, because other libraries on this thread change it too.
     */
    public void makeCurrent() {
        if (closed.get()) {
            throw new IllegalStateException("the context of " + device + " is closed");
        }
        MemorySegment current = CallSlots.context();
        GET_CURRENT.call(current);
        if (CallSlots.asLong(current) != handle) {
            SET_CURRENT.call(handle);
        }
    }

    /** Whether another context of the same GPU is current on the calling thread. */
    boolean isReplaced() {
        GET_CURRENT.call(CallSlots.context());
        long current = CallSlots.asLong(CallSlots.context());
        if (current == 0 || current == handle) {
            return false;
        }
        GET_DEVICE.call(CallSlots.first());
        return CallSlots.asInt(CallSlots.first()) == cudaDevice.ordinal();
    }

    /** Blocks until all work of this context has finished, other libraries' work included. */
    public void synchronize() {
        makeCurrent();
        SYNCHRONIZE.invoke();
    }

    /** The highest priority a stream can have: the lowest number. */
    public int greatestStreamPriority() {
        makeCurrent();
        PRIORITY_RANGE.invoke(CallSlots.first(), CallSlots.second());
        return CallSlots.asInt(CallSlots.second());
    }

    /** Bytes of device memory that are free now, whoever holds the rest. */
    public long freeMemoryBytes() {
        makeCurrent();
        MEM_GET_INFO.invoke(CallSlots.first(), CallSlots.second());
        return CallSlots.asLong(CallSlots.first());
    }

    /**
     * Gives the context back; the driver destroys it once nobody in this process holds it. Nothing
     * happens to a {@link #shared} one. Idempotent.
     */
    @Override
    public void close() {
        if (!shared && closed.compareAndSet(false, true)) {
            PRIMARY_RELEASE.call(cudaDevice.ordinal());
        }
    }

    @Override
    public String toString() {
        return device + " (" + cudaDevice.name() + ")";
    }
}
