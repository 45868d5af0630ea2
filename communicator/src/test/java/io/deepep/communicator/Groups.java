package io.deepep.communicator;

import io.deepep.spi.LoopbackPorts;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Consumer;
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
        return open(size, LoopbackPorts.free());
    }

    static List<ProcessCommunicator> open(int size, int port) throws Exception {
        return each(size, rank -> ProcessCommunicator.open(environment(rank, size, port), LONG));
    }

    /** One rank, which waits for the others on a thread of its own. */
    static CompletableFuture<ProcessCommunicator> opening(int rank, int size, int port) {
        return CompletableFuture.supplyAsync(
                () -> ProcessCommunicator.open(environment(rank, size, port), LONG),
                task -> Thread.ofPlatform().daemon().start(task));
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

    /** Lets every rank do something on a thread of its own. */
    static void onEach(List<ProcessCommunicator> group, Consumer<ProcessCommunicator> task)
            throws Exception {
        each(
                group.size(),
                rank -> {
                    task.accept(group.get(rank));
                    return null;
                });
    }

    static void barrier(List<ProcessCommunicator> group) throws Exception {
        onEach(group, each -> each.barrier(LONG));
    }

    static void closeAll(List<ProcessCommunicator> group) throws Exception {
        onEach(group, ProcessCommunicator::close);
    }
}
