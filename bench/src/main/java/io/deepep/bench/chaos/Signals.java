package io.deepep.bench.chaos;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.io.PrintStream;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.invoke.MethodHandle;

/** Signals of a process to itself: only so can they strike at a moment that it chooses. */
interface Signals {
    /** Ends the process at once. */
    void kill();

    /** Stops the process until somebody continues it. */
    void stop();

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
            private final MethodHandle send = bindKill();

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

            private void send(int signal) {
                try {
                    int status =
                            (int) send.invokeExact((int) ProcessHandle.current().pid(), signal);
                    if (status != 0) {
                        throw new IllegalStateException("kill returned " + status);
                    }
                } catch (RuntimeException | Error failure) {
                    throw failure;
                } catch (Throwable impossible) {
                    throw new IllegalStateException(impossible);
                }
            }
        };
    }

    @SuppressWarnings("restricted") // Java has no signals
    private static MethodHandle bindKill() {
        Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(
                linker.defaultLookup().findOrThrow("kill"),
                FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT));
    }
}
