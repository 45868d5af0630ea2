package io.deepep.communicator;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Threads for what may take long, such as connecting, or writing to a process that does not read.
 * They are of the platform, because all that a rank says goes over them: virtual threads do not run
 * while others wait in foreign calls, for a GPU say, and hold all carriers.
 */
final class Errands {
    private static final ExecutorService THREADS =
            Executors.newCachedThreadPool(
                    Thread.ofPlatform()
                            .daemon()
                            .inheritInheritableThreadLocals(false)
                            .name("deepep-communicator-", 0)
                            .factory());

    private Errands() {}

    /** Runs {@code errand} soon, on another thread. */
    static void run(Runnable errand) {
        THREADS.execute(errand);
    }

    /** The same; false if the system has no thread for it. */
    static boolean start(Runnable errand) {
        try {
            run(errand);
            return true;
        } catch (OutOfMemoryError noThread) {
            return false;
        }
    }

    /**
     * Runs those for which there are threads at once and waits for all, but not longer than that;
     * they throw nothing.
     */
    static void runAll(List<Runnable> errands, Duration atMost) {
        CompletableFuture<?>[] runs =
                errands.stream()
                        .map(errand -> CompletableFuture.runAsync(errand, Errands::start))
                        .toArray(CompletableFuture[]::new);
        try {
            CompletableFuture.allOf(runs).get(atMost.toNanos(), TimeUnit.NANOSECONDS);
        } catch (TimeoutException theyGoOn) {
            // Whom they talk to may have stopped.
        } catch (ExecutionException impossible) {
            throw new IllegalStateException(impossible);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
