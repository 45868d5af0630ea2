package io.deepep.communicator;

import io.deepep.spi.LoopbackPorts;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;

/** Groups on the loopback address for tests. */
final class Groups {
    static final String SECRET = "a secret of the tests";
    static final Duration LONG = Duration.ofSeconds(40);

    private Groups() {}

    static ProcessEnvironment environment(int rank, int size, int port) {
        return environment(rank, size, "127.0.0.1", port, SECRET);
    }

    static ProcessEnvironment environment(
            int rank, int size, String address, int port, String secret) {
        return new ProcessEnvironment(
                rank,
                size,
                rank,
                size,
                address,
                port,
                secret,
                ProcessEnvironment.DEFAULT_FAILURE_TIMEOUT);
    }

    /** What a launcher gives a rank of one host; may be changed. */
    static Map<String, String> variables(int rank, int size, String address, int port) {
        return new HashMap<>(
                Map.of(
                        "RANK", Integer.toString(rank),
                        "WORLD_SIZE", Integer.toString(size),
                        "LOCAL_RANK", Integer.toString(rank),
                        "LOCAL_WORLD_SIZE", Integer.toString(size),
                        "MASTER_ADDR", address,
                        "MASTER_PORT", Integer.toString(port),
                        "DEEPEP_SECRET", SECRET));
    }

    static List<ProcessCommunicator> open(int size) throws Exception {
        int port = LoopbackPorts.free();
        return each(size, rank -> ProcessCommunicator.open(environment(rank, size, port), LONG));
    }

    @FunctionalInterface
    interface RankCall<T> {
        T call(int rank) throws Exception;
    }

    /** Calls for every rank on a thread of its own; the results in rank order. */
    static <T> List<T> each(int size, RankCall<T> task) throws Exception {
        try (ExecutorService threads =
                Executors.newThreadPerTaskExecutor(Thread.ofPlatform().factory())) {
            List<Future<T>> futures =
                    IntStream.range(0, size)
                            .mapToObj(rank -> threads.submit((Callable<T>) () -> task.call(rank)))
                            .toList();
            List<T> results = new ArrayList<>();
            for (Future<T> future : futures) {
                results.add(future.get());
            }
            return results;
        } catch (ExecutionException failed) {
            throw failed.getCause() instanceof Exception cause ? cause : failed;
        }
    }

    static void closeAll(List<ProcessCommunicator> communicators) throws Exception {
        each(
                communicators.size(),
                rank -> {
                    communicators.get(rank).close();
                    return null;
                });
    }
}
