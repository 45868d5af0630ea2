package io.deepep.djl;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BOOLEAN;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import ai.djl.Device;
import io.deepep.Buffer;
import io.deepep.Tensor;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.NativeCallException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * GPUDirect Storage: cuFile brings files from the disk into GPU memory, past the host's. It is used
 * with {@code -Ddeepep.cufile=true}. Where the kernel or a file system lacks what that needs,
 * cuFile may read through the host's memory (its compatible mode); files that it refuses are read
 * as without it. For one thread.
 */
final class CuFile implements AutoCloseable {
    private static final String PROPERTY = "deepep.cufile";
    private static final String LIBRARY = "libcufile.so.0";

    /** {@code CU_FILE_HANDLE_TYPE_OPAQUE_FD}. */
    private static final int FILE_DESCRIPTOR = 1;

    /** {@code CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE}. */
    private static final int ALLOW_COMPATIBLE_MODE = 1;

    /** {@code CU_FILE_DRIVER_ALREADY_OPEN}. */
    private static final int ALREADY_OPEN = 5026;

    /** {@code CUfileDescr_t}: its type, the descriptor, functions that are not used. */
    private static final long DESCR_BYTES = 24;

    private static final long DESCR_FD = 8;
    private static final int O_DIRECT =
            System.getProperty("os.arch").equals("aarch64") ? 0x10000 : 0x4000;

    private static final System.Logger LOG = System.getLogger(CuFile.class.getName());

    private final Device device;
    private final Functions functions;
    private final Map<Path, Registered> files = new HashMap<>();

    /** An open file; its handle is 0 where cuFile cannot read it. */
    private record Registered(int fd, long handle) {}

    /** Of the library, which stays loaded. */
    private record Functions(
            MethodHandle register,
            MethodHandle deregister,
            MethodHandle read,
            MethodHandle open,
            MethodHandle close) {
        /**
         * Opens the driver. A {@code CUfileError_t}, of two ints, is returned as a number is: the
         * low half is cuFile's code.
         */
        static Functions load() {
            Linker linker = Linker.nativeLinker();
            SymbolLookup cufile = library();
            SymbolLookup libc = linker.defaultLookup();
            FunctionDescriptor setBool = FunctionDescriptor.of(JAVA_LONG, JAVA_INT, JAVA_BOOLEAN);
            cufile.find("cuFileSetParameterBool") // not in older ones
                    .ifPresent(
                            set ->
                                    call(
                                            linker.downcallHandle(set, setBool),
                                            ALLOW_COMPATIBLE_MODE,
                                            true));
            int code =
                    (int)
                            call(
                                    linker.downcallHandle(
                                            cufile.findOrThrow("cuFileDriverOpen"),
                                            FunctionDescriptor.of(JAVA_LONG)));
            if (code != 0 && code != ALREADY_OPEN) {
                throw new NativeCallException("cuFileDriverOpen", code, "cuFile", LIBRARY, false);
            }
            return new Functions(
                    linker.downcallHandle(
                            cufile.findOrThrow("cuFileHandleRegister"),
                            FunctionDescriptor.of(JAVA_LONG, ADDRESS, ADDRESS)),
                    linker.downcallHandle(
                            cufile.findOrThrow("cuFileHandleDeregister"),
                            FunctionDescriptor.ofVoid(JAVA_LONG)),
                    linker.downcallHandle(
                            cufile.findOrThrow("cuFileRead"),
                            FunctionDescriptor.of(
                                    JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG,
                                    JAVA_LONG)),
                    linker.downcallHandle(
                            libc.findOrThrow("open"),
                            FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT),
                            Linker.Option.firstVariadicArg(2)),
                    linker.downcallHandle(
                            libc.findOrThrow("close"), FunctionDescriptor.of(JAVA_INT, JAVA_INT)));
        }
    }

    private static SymbolLookup library() {
        try {
            return SymbolLookup.libraryLookup(LIBRARY, Arena.global());
        } catch (IllegalArgumentException missing) {
            throw new DeepEpUnavailableException(
                    PROPERTY + "=true, but " + LIBRARY + " cannot be loaded",
                    "install cuFile (it comes with CUDA and with PyTorch for CUDA) on the library path, or leave"
                            + " the property out",
                    missing);
        }
    }

    private CuFile(Device device, Functions functions) {
        this.device = device;
        this.functions = functions;
    }

    /**
     * For files that go to a device, or null where cuFile is not to be used.
     *
     * @throws DeepEpUnavailableException if it was asked for and is not there
     */
    static CuFile orNull(Device device) {
        return Boolean.getBoolean(PROPERTY) && device.isGpu()
                ? new CuFile(device, Functions.load())
                : null;
    }

    /**
     * Reads a part of a file; the bytes are there when it returns. False if cuFile does not read
     * this file: then nothing was done.
     *
     * @param to contiguous, of as many bytes, on the device
     * @throws IOException if reading fails
     */
    boolean read(Path file, long offset, long numBytes, Tensor to) throws IOException {
        Registered registered = files.computeIfAbsent(file, this::register);
        if (registered.handle == 0) {
            return false;
        }
        // libtorch gives out memory that its stream may still use.
        Buffer.capture(TorchStreams.current(device)).synchronize();
        long guard = LibTorch.createCudaGuard(device.getDeviceId());
        try {
            for (long done = 0; done < numBytes; ) {
                long more =
                        call(
                                functions.read,
                                registered.handle,
                                to.address(),
                                numBytes - done,
                                offset + done,
                                done);
                if (more <= 0) {
                    throw new IOException(
                            "%s: cuFile read %s of %s bytes at %s, and then returned %s"
                                    .formatted(file, done, numBytes, offset, more));
                }
                done += more;
            }
        } finally {
            LibTorch.deleteCudaGuard(guard);
        }
        return true;
    }

    private Registered register(Path file) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment path = arena.allocateFrom(file.toString());
            int fd = (int) call(functions.open, path, O_DIRECT, 0);
            if (fd < 0) { // a file system without direct reads
                fd = (int) call(functions.open, path, 0, 0);
            }
            MemorySegment descr = arena.allocate(DESCR_BYTES, Long.BYTES);
            descr.set(JAVA_INT, 0, FILE_DESCRIPTOR);
            descr.set(JAVA_INT, DESCR_FD, fd);
            MemorySegment handle = arena.allocate(JAVA_LONG);
            int code = (int) call(functions.register, handle, descr);
            if (fd >= 0 && code == 0) {
                return new Registered(fd, handle.get(JAVA_LONG, 0));
            }
            LOG.log(
                    System.Logger.Level.DEBUG,
                    "cuFile cannot read {0} (code {1}), so the host reads it",
                    file,
                    Integer.toString(code));
            return new Registered(fd, 0);
        }
    }

    private static long call(MethodHandle function, Object... arguments) {
        try {
            Object result = function.invokeWithArguments(arguments);
            return result instanceof Number number ? number.longValue() : 0;
        } catch (Throwable t) {
            throw LibTorch.rethrow(t);
        }
    }

    @Override
    public void close() {
        files.values()
                .forEach(
                        each -> {
                            if (each.handle != 0) {
                                call(functions.deregister, each.handle);
                            }
                            if (each.fd >= 0) {
                                call(functions.close, each.fd);
                            }
                        });
        files.clear();
    }
}
