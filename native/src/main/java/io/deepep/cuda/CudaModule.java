package io.deepep.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.cuda.driver.CuCall;
import io.deepep.cuda.driver.CuError;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.URL;
import java.util.concurrent.atomic.AtomicBoolean;

/** Device code loaded into one context. */
public final class CudaModule implements AutoCloseable {
    private static final int JIT_ERROR_LOG_BUFFER = 5;
    private static final int JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6;
    private static final int JIT_LOG_BYTES = 8192;

    private static final CuCall LOAD_DATA =
            CuCall.of("cuModuleLoadDataEx", ADDRESS, ADDRESS, JAVA_INT, ADDRESS, ADDRESS);
    private static final CuCall UNLOAD = CuCall.of("cuModuleUnload", JAVA_LONG);
    private static final CuCall GET_FUNCTION =
            CuCall.of("cuModuleGetFunction", ADDRESS, JAVA_LONG, ADDRESS);
    private static final CuCall GET_GLOBAL =
            CuCall.of("cuModuleGetGlobal_v2", ADDRESS, ADDRESS, JAVA_LONG, ADDRESS);
    private static final CuCall COPY_TO_HOST =
            CuCall.of("cuMemcpyDtoH_v2", ADDRESS, JAVA_LONG, JAVA_LONG);
    private static final CuCall FUNC_LOAD = CuCall.of("cuFuncLoad", JAVA_LONG);

    private final CudaContext context;
    private final String name;
    private final long handle;
    private final AtomicBoolean closed = new AtomicBoolean();

    private CudaModule(CudaContext context, String name, long handle) {
        this.context = context;
        this.name = name;
        this.handle = handle;
    }

    /**
     * Loads a fatbin from a jar.
     *
     * @param name for messages
     * @param code where it lies, as a class of that jar finds it: others may not see into it; null
     *     if it is not there
     * @throws DeepEpUnavailableException if it is not there, or has no code for this GPU
     */
    public static CudaModule loadResource(CudaContext context, String name, URL code) {
        if (code == null) {
            throw new DeepEpUnavailableException(
                    "device code " + name + " is not on the class path", DeviceCode.cure());
        }
        try (InputStream in = code.openStream()) {
            return load(context, name, in.readAllBytes());
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read device code " + name, e);
        }
    }

    /**
     * Loads a fatbin, cubin or PTX.
     *
     * @param name for messages
     */
    public static CudaModule load(CudaContext context, String name, byte[] image) {
        context.makeCurrent();
        try (Arena arena = Arena.ofConfined()) {
            // PTX is text and needs its end; a fatbin's header is read by aligned loads.
            MemorySegment copy = arena.allocate(image.length + 1L, 64);
            MemorySegment.copy(image, 0, copy, JAVA_BYTE, 0, image.length);
            MemorySegment log = arena.allocate(JIT_LOG_BYTES);
            MemorySegment options =
                    arena.allocateFrom(
                            JAVA_INT, JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
            // The size travels in the pointer itself.
            MemorySegment values =
                    arena.allocateFrom(JAVA_LONG, log.address(), (long) JIT_LOG_BYTES);
            try {
                long handle = LOAD_DATA.ask(copy, 2, options, values);
                return new CudaModule(context, name, handle);
            } catch (NativeCallException e) {
                throw withLog(e, context.device() + ", module " + name, log.getString(0));
            }
        }
    }

    private static NativeCallException withLog(NativeCallException e, String where, String log) {
        String place = log.isBlank() ? where : where + " (" + log.strip() + ")";
        NativeCallException detailed =
                new NativeCallException(
                        e.call(), e.code(), CuError.name(e.code()), place, e.isFatal());
        detailed.addSuppressed(e);
        return detailed;
    }

    /** What it was called when it was loaded. */
    public String name() {
        return name;
    }

    /**
     * A kernel, loaded onto the GPU now: at its first launch, loading could wait for a kernel that
     * waits for it.
     *
     * @param function its unmangled name ({@code extern "C"})
     * @throws io.deepep.error.NativeCallException {@code CUDA_ERROR_NOT_FOUND}
     */
    public CudaFunction function(String function) {
        context.makeCurrent();
        try (Arena arena = Arena.ofConfined()) {
            long functionHandle = GET_FUNCTION.ask(handle(), arena.allocateFrom(function));
            FUNC_LOAD.call(functionHandle);
            return new CudaFunction(context, function, functionHandle);
        } catch (NativeCallException e) {
            throw withLog(
                    e, context.device() + ", function " + function + " of module " + name, "");
        }
    }

    /** Device address of a {@code __device__} variable. */
    public long globalAddress(String variable) {
        context.makeCurrent();
        try (Arena arena = Arena.ofConfined()) {
            return GET_GLOBAL.ask(MemorySegment.NULL, handle(), arena.allocateFrom(variable));
        } catch (NativeCallException e) {
            throw withLog(
                    e, context.device() + ", variable " + variable + " of module " + name, "");
        }
    }

    /** The value of a {@code __device__} variable of 8 bytes. */
    public long globalLong(String variable) {
        return COPY_TO_HOST.ask(globalAddress(variable), Long.BYTES);
    }

    /** The driver's {@code CUmodule}. */
    public long handle() {
        if (closed.get()) {
            throw new IllegalStateException("module " + name + " is closed");
        }
        return handle;
    }

    /** Unloads the code: not before its kernels are done. Idempotent. */
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            context.makeCurrent();
            UNLOAD.call(handle);
        }
    }
}
