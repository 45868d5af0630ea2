package io.deepep.spi.posix;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.error.DeepEpUnavailableException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.List;

/** Functions of the C library. If a call fails, they throw {@link Failure}. */
@SuppressWarnings("restricted") // calling native functions is what this class is for
final class Libc {
    static final int ENOMEM = 12;
    static final int ENOSPC = 28;
    private static final int EINTR = 4;

    private static final StructLayout CAPTURED = Linker.Option.captureStateLayout();
    private static final long ERRNO_OFFSET = CAPTURED.byteOffset(PathElement.groupElement("errno"));

    private final MethodHandle close = bind("close", FunctionDescriptor.of(JAVA_INT, JAVA_INT));
    private final MethodHandle fallocate =
            bind(
                    "fallocate",
                    FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG));
    private final MethodHandle fcntl =
            bind(
                    "fcntl",
                    FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT),
                    Linker.Option.firstVariadicArg(2));
    private final MethodHandle ftruncate =
            bind("ftruncate", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG));
    private final MethodHandle geteuid = bind("geteuid", FunctionDescriptor.of(JAVA_INT));
    private final MethodHandle getpagesize = bind("getpagesize", FunctionDescriptor.of(JAVA_INT));
    private final MethodHandle memfdCreate =
            bind("memfd_create", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT));
    private final MethodHandle mmap =
            bind(
                    "mmap",
                    FunctionDescriptor.of(
                            JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT,
                            JAVA_LONG));
    private final MethodHandle open =
            bind(
                    "open",
                    FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT),
                    Linker.Option.firstVariadicArg(2));
    private final MethodHandle strerror =
            bind("strerror", FunctionDescriptor.of(ADDRESS, JAVA_INT));
    private final MethodHandle syscall =
            bind(
                    "syscall",
                    FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG),
                    Linker.Option.firstVariadicArg(1));

    private Libc() {}

    /** A call that failed, and why. */
    static final class Failure extends RuntimeException {
        private static final long serialVersionUID = 1L;
        private final int errno;

        Failure(String call, int errno, String meaning) {
            super(call + " failed: " + meaning + " (errno " + errno + ")");
            this.errno = errno;
        }

        int errno() {
            return errno;
        }
    }

    /** Loaded with the first use, so that a system without these functions fails there. */
    private static final class Loaded {
        private static final Libc LIBC;
        private static final RuntimeException REFUSED;

        static {
            Libc libc = null;
            RuntimeException refused = null;
            try {
                libc = new Libc();
            } catch (RuntimeException e) {
                refused = e;
            }
            LIBC = libc;
            REFUSED = refused;
        }
    }

    /**
     * The library.
     *
     * @throws DeepEpUnavailableException if this system lacks the functions, or the JVM may not
     *     call them
     */
    static Libc get() {
        if (Loaded.LIBC == null) {
            throw new DeepEpUnavailableException(
                    "the C library's functions for shared memory cannot be called: "
                            + Loaded.REFUSED.getMessage(),
                    "use Linux, start Java with "
                            + NativeAccess.OPTION
                            + ", or run the ranks as threads of one process",
                    Loaded.REFUSED);
        }
        return Loaded.LIBC;
    }

    int close(int fd) {
        return (int) call("close", close, fd);
    }

    /** Allocates the pages of {@code [offset, offset + bytes)}. */
    void fallocate(int fd, long offset, long bytes) {
        call("fallocate", fallocate, fd, 0, offset, bytes);
    }

    int fcntl(int fd, int command, int argument) {
        return (int) call("fcntl", fcntl, fd, command, argument);
    }

    void ftruncate(int fd, long bytes) {
        call("ftruncate", ftruncate, fd, bytes);
    }

    int geteuid() {
        return (int) call("geteuid", geteuid);
    }

    int getpagesize() {
        return (int) call("getpagesize", getpagesize);
    }

    int memfdCreate(String name, int flags) {
        try (Arena arena = Arena.ofConfined()) {
            return (int) call("memfd_create", memfdCreate, arena.allocateFrom(name), flags);
        }
    }

    /** Returns where the mapping begins. */
    long mmap(long address, long bytes, int protection, int flags, int fd, long offset) {
        return call("mmap", mmap, address, bytes, protection, flags, fd, offset);
    }

    int open(String path, int flags) {
        try (Arena arena = Arena.ofConfined()) {
            return (int) call("open of " + path, open, arena.allocateFrom(path), flags, 0);
        }
    }

    long syscall(String name, long number, long a, long b, long c) {
        return call(name, syscall, number, a, b, c);
    }

    private long call(String name, MethodHandle function, Object... arguments) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = arena.allocate(CAPTURED);
            List<Object> all = new ArrayList<>(List.of(arguments));
            all.addFirst(state);
            while (true) {
                long result = ((Number) invoke(function, all)).longValue();
                int errno = state.get(JAVA_INT, ERRNO_OFFSET);
                if (result != -1) {
                    return result;
                }
                if (errno != EINTR) {
                    throw new Failure(name, errno, meaning(state, errno));
                }
            }
        }
    }

    private String meaning(MemorySegment state, int errno) {
        MemorySegment text = (MemorySegment) invoke(strerror, List.of(state, errno));
        return text.reinterpret(Long.MAX_VALUE).getString(0);
    }

    private static Object invoke(MethodHandle function, List<Object> arguments) {
        try {
            return function.invokeWithArguments(arguments);
        } catch (Throwable impossible) {
            throw new AssertionError("a C function does not throw", impossible);
        }
    }

    /** A function that sets errno. */
    private static MethodHandle bind(
            String name, FunctionDescriptor descriptor, Linker.Option... others) {
        List<Linker.Option> options = new ArrayList<>(List.of(others));
        options.add(Linker.Option.captureCallState("errno"));
        Linker linker = Linker.nativeLinker();
        MemorySegment function =
                linker.defaultLookup()
                        .find(name)
                        .orElseThrow(
                                () -> new UnsupportedOperationException("no function " + name));
        return linker.downcallHandle(function, descriptor, options.toArray(Linker.Option[]::new));
    }
}
