package io.deepep.bench.chaos;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.io.PrintStream;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** What a process does to itself: only so can it strike at a moment that it chooses. */
final class Signals {
    /** For ranks that are threads, to which no trial sends signals. */
    static final Signals NONE = new Signals(null);

    /** A size that no file reaches. */
    static final long UNLIMITED = -1;

    private static final int SIGKILL = 9;
    private static final int SIGCONT = 18;
    private static final int SIGSTOP = 19;
    private static final int RLIMIT_FSIZE = 1;
    private static final int PR_SET_PDEATHSIG = 1;
    private static final MethodHandle KILL = bind("kill", JAVA_INT, JAVA_INT);
    private static final MethodHandle GET_LIMIT = bind("getrlimit", JAVA_INT, ADDRESS);
    private static final MethodHandle SET_LIMIT = bind("setrlimit", JAVA_INT, ADDRESS);
    private static final MethodHandle CONTROL =
            bind(
                    "prctl",
                    FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG),
                    Linker.Option.firstVariadicArg(1));

    private final PrintStream announcements;

    /**
     * Of this process.
     *
     * @param announcements where {@link RankProgram#STOPPING} is said, for whoever continues it;
     *     null for a rank that is a thread
     */
    Signals(PrintStream announcements) {
        this.announcements = announcements;
    }

    /** Ends the process at once. */
    void kill() {
        requireProcess();
        send(ProcessHandle.current().pid(), SIGKILL);
    }

    /** Stops the process until somebody continues it. */
    void stop() {
        requireProcess();
        announcements.println(RankProgram.STOPPING);
        announcements.flush();
        send(ProcessHandle.current().pid(), SIGSTOP);
    }

    /** Lets no file of the process, and no shared memory, grow beyond {@code bytes}. */
    void limitFileSize(long bytes) {
        requireProcess();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment limits = arena.allocate(JAVA_LONG, 2); // in force, and the most
            call("getrlimit", GET_LIMIT, RLIMIT_FSIZE, limits);
            long most = limits.getAtIndex(JAVA_LONG, 1);
            limits.setAtIndex(JAVA_LONG, 0, bytes == UNLIMITED ? most : bytes);
            call("setrlimit", SET_LIMIT, RLIMIT_FSIZE, limits);
        }
    }

    /**
     * Has this process killed when who started it is gone, or the thread that did: while stopped,
     * it does not see that its input ends.
     */
    static void endWithParent() {
        call("prctl", CONTROL, PR_SET_PDEATHSIG, (long) SIGKILL);
    }

    private void requireProcess() {
        if (announcements == null) {
            throw new IllegalStateException("a thread has neither signals nor limits of its own");
        }
    }

    /** Continues a process if it is stopped. */
    static void goOn(long pid) {
        try {
            send(pid, SIGCONT);
        } catch (IllegalStateException ended) {
            // It was killed meanwhile: whoever waits for it learns that.
        }
    }

    private static void send(long pid, int signal) {
        call("kill", KILL, (int) pid, signal);
    }

    private static void call(String name, MethodHandle function, Object... arguments) {
        int status;
        try {
            status = (int) function.invokeWithArguments(arguments);
        } catch (Throwable impossible) {
            throw new IllegalStateException("a C function does not throw", impossible);
        }
        if (status != 0) {
            throw new IllegalStateException(name + " returned " + status);
        }
    }

    private static MethodHandle bind(String function, MemoryLayout... arguments) {
        return bind(function, FunctionDescriptor.of(JAVA_INT, arguments));
    }

    @SuppressWarnings("restricted") // Java has neither signals nor limits
    private static MethodHandle bind(
            String function, FunctionDescriptor type, Linker.Option... options) {
        Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(linker.defaultLookup().findOrThrow(function), type, options);
    }
}
