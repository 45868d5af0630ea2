package io.deepep.cuda;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.deepep.error.DeepEpUnavailableException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodHandle;

/** Descriptors of exported memory, handed between the processes of one host. Linux 5.6 or later. */
public final class PosixFd {
    // The same numbers on every architecture.
    private static final long SYS_PIDFD_OPEN = 434;
    private static final long SYS_PIDFD_GETFD = 438;
    private static final long SYS_PRCTL_X86_64 = 157;
    private static final long SYS_PRCTL_AARCH64 = 167;
    private static final long PR_SET_PTRACER = 0x59616d61;
    private static final long PR_SET_PTRACER_ANY = -1;

    private static final StructLayout CAPTURED = Linker.Option.captureStateLayout();
    private static final long ERRNO_OFFSET = CAPTURED.byteOffset(PathElement.groupElement("errno"));
    private static final MemoryLayout[] SYSCALL_PARAMETERS = {
        JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG
    };
    private static final MethodHandle SYSCALL =
            libc(
                    "syscall",
                    FunctionDescriptor.of(JAVA_LONG, SYSCALL_PARAMETERS),
                    Linker.Option.captureCallState("errno"),
                    Linker.Option.firstVariadicArg(1));
    private static final MethodHandle CLOSE =
            libc("close", FunctionDescriptor.of(JAVA_INT, JAVA_INT));

    private PosixFd() {}

    /**
     * Lets other processes of the same user fetch descriptors from this one, where the kernel's
     * Yama module would only let its parent. Nothing happens where there is no such module.
     */
    public static void allowFetching() {
        boolean arm = System.getProperty("os.arch").equals("aarch64");
        try (Arena arena = Arena.ofConfined()) {
            // EINVAL: no Yama, nothing to allow.
            syscall(
                    arena.allocate(CAPTURED),
                    arm ? SYS_PRCTL_AARCH64 : SYS_PRCTL_X86_64,
                    PR_SET_PTRACER,
                    PR_SET_PTRACER_ANY,
                    0);
        }
    }

    /**
     * Duplicates a descriptor of another process into this one; {@link #close} it.
     *
     * @param pid the process, which has called {@link #allowFetching()}
     * @param fd the number there
     * @throws DeepEpUnavailableException if the kernel refuses
     */
    public static int fetch(long pid, int fd) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = arena.allocate(CAPTURED);
            long pidFd = syscall(state, SYS_PIDFD_OPEN, pid, 0, 0);
            if (pidFd < 0) {
                throw refused("pidfd_open of process " + pid, state);
            }
            try {
                long own = syscall(state, SYS_PIDFD_GETFD, pidFd, fd, 0);
                if (own < 0) {
                    throw refused("pidfd_getfd of descriptor " + fd + " of process " + pid, state);
                }
                return (int) own;
            } finally {
                close((int) pidFd);
            }
        }
    }

    /** Closes a descriptor. */
    public static void close(int fd) {
        try {
            int status = (int) CLOSE.invokeExact(fd);
            if (status != 0) {
                throw new IllegalArgumentException("fd=" + fd + " is not an open descriptor");
            }
        } catch (Throwable t) {
            throw CuCall.rethrow(t);
        }
    }

    private static long syscall(MemorySegment state, long number, long a, long b, long c) {
        try {
            return (long) SYSCALL.invokeExact(state, number, a, b, c);
        } catch (Throwable t) {
            throw CuCall.rethrow(t);
        }
    }

    private static DeepEpUnavailableException refused(String what, MemorySegment state) {
        return new DeepEpUnavailableException(
                what + " failed: errno " + state.get(JAVA_INT, ERRNO_OFFSET),
                "run the ranks as one user in one PID namespace; containers need --cap-add=SYS_PTRACE and --pid shared",
                null);
    }

    private static MethodHandle libc(
            String name, FunctionDescriptor descriptor, Linker.Option... options) {
        Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(
                linker.defaultLookup().find(name).orElseThrow(), descriptor, options);
    }
}
