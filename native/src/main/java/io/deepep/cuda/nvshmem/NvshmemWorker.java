package io.deepep.cuda.nvshmem;

import io.deepep.cuda.driver.CuCall;
import io.deepep.error.DeepEpUnavailableException;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * The one thread that calls NVSHMEM, which takes calls from one thread at a time, with the CUDA
 * context current. Callers wait for it with a time limit, because collective calls never return
 * when a peer is gone. After such a call the thread is lost, and so is NVSHMEM in this process.
 */
final class NvshmemWorker {
    private static final double NANOS_PER_SECOND = 1e9;

    private final ExecutorService executor =
            Executors.newSingleThreadExecutor(
                    Thread.ofPlatform()
                            .inheritInheritableThreadLocals(false)
                            .name("nvshmem")
                            .daemon()
                            .factory());
    private final Duration timeout;
    private volatile boolean lost;

    NvshmemWorker(Duration timeout) {
        this.timeout = timeout;
    }

    /** Runs a call that returns nothing. */
    void run(String call, Runnable work) {
        get(call, Executors.callable(work));
    }

    /**
     * Runs a call and returns its result.
     *
     * @throws DeepEpUnavailableException if it does not return in time
     */
    <T> T get(String call, Callable<T> work) {
        Future<T> result = executor.submit(work);
        try {
            return result.get(timeout.toNanos(), TimeUnit.NANOSECONDS);
        } catch (TimeoutException e) {
            lost = true;
            throw new DeepEpUnavailableException(
                    String.format(
                            Locale.ROOT,
                            "%s did not return within %.1f s",
                            call,
                            timeout.toNanos() / NANOS_PER_SECOND),
                    "check that all ranks are alive and make the same calls, and that they reach each other over the"
                            + " bootstrap interface (bootstrapInterface=eth0)",
                    e);
        } catch (ExecutionException e) {
            throw CuCall.rethrow(e.getCause());
        } catch (InterruptedException e) {
            lost = true;
            Thread.currentThread().interrupt();
            throw new DeepEpUnavailableException(
                    "interrupted while waiting for " + call, "close the buffer", e);
        }
    }

    /** Whether a call has not returned, so that no other can be made. */
    boolean isLost() {
        return lost;
    }

    /** Lets the thread end once its last call has returned, if it ever does. */
    void close() {
        executor.shutdown();
    }
}
