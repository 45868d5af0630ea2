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
interface Signals {
    /** A size that no file reaches. */
    long UNLIMITED = -1;

    /** Ends the process at once. */
    void kill();

    /** Stops the process until somebody continues it. */
    void stop();

    /** Lets no file of the process, and no shared memory, grow beyond {@code bytes}. */
    void limitFileSize(long bytes);

    /** For ranks that are threads, to which no trial sends signals. */
    Signals NONE =
            new Signals() {
                @Override
                public void kill() {
                    throw new IllegalStateException("a thread cannot be killed");
                }

                @Override
                public void stop() {
                    throw new IllegalStateException("a thread cannot be stopped");
                }

                @Override
                public void limitFileSize(long bytes) {
                    throw new IllegalStateException("a thread has no limits of its own");
                }
            };

    /**
     * Of this process.
     *
     * @param announcements where {@link RankProgram#STOPPING} is said, for whoever continues it
     */
    static Signals ofThisProcess(PrintStream announcements) {
        return new Signals() {
            private static final int SIGKILL = 9;
            private static final int SIGSTOP = 19;
            private static final int RLIMIT_FSIZE = 1;
            private final MethodHandle send = bind("kill", JAVA_INT, JAVA_INT);
            private final MethodHandle getLimit = bind("getrlimit", JAVA_INT, ADDRESS);
            private final MethodHandle setLimit = bind("setrlimit", JAVA_INT, ADDRESS);

            @Override
            public void kill() {
                send(SIGKILL);
            }

            @Override
            public void stop() {
                announcements.println(RankProgram.STOPPING);
                announcements.flush();
                send(SIGSTOP);
            }

            @Override
            public void limitFileSize(long bytes) {
                try (Arena arena = Arena.ofConfined()) {
                    MemorySegment limits = arena.allocate(JAVA_LONG, 2); // in force, and the most
                    int status = (int) getLimit.invokeExact(RLIMIT_FSIZE, limits);
                    long most = limits.getAtIndex(JAVA_LONG, 1);
                    limits.setAtIndex(JAVA_LONG, 0, bytes == UNLIMITED ? most : bytes);
                    status |= (int) setLimit.invokeExact(RLIMIT_FSIZE, limits);
                    if (status != 0) {
                        throw new IllegalStateException("setrlimit returned " + status);
                    }
                } catch (RuntimeException | Error failure) {
                    throw failure;
                } catch (Throwable impossible) {
                    throw new IllegalStateException(impossible);
                }
            }

            private void send(int signal) {
                Signals.send(send, ProcessHandle.current().pid(), signal);
            }
        };
    }

    /** Continues a process if it is stopped. */
    static void goOn(long pid) {
        int sigcont = 18;
        try {
            send(bind("kill", JAVA_INT, JAVA_INT), pid, sigcont);
        } catch (IllegalStateException ended) {
            // It was killed meanwhile: whoever waits for it learns that.
        }
    }

    private static void send(MethodHandle kill, long pid, int signal) {
        try {
            int status = (int) kill.invokeExact((int) pid, signal);
            if (status != 0) {
                throw new IllegalStateException("kill returned " + status);
            }
        } catch (RuntimeException | Error failure) {
            throw failure;
        } catch (Throwable impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    @SuppressWarnings("restricted") // Java has neither signals nor limits
    private static MethodHandle bind(String function, MemoryLayout... arguments) {
        Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(
                linker.defaultLookup().findOrThrow(function),
                FunctionDescriptor.of(JAVA_INT, arguments));
    }
}
