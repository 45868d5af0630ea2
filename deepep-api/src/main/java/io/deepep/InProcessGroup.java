package io.deepep;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * A group whose ranks are threads of this JVM.
 *
 * <pre>{@code
 * try (InProcessGroup group = InProcessGroup.of(8)) {
 *     group.run(communicator -> {
 *         try (Buffer buffer = Buffer.builder(communicator).normal(limits).open()) { ... }
 *     });
 * }
 * }</pre>
 */
public final class InProcessGroup implements AutoCloseable {
    private final InProcessExchange exchange;
    private final List<Communicator> communicators;

    private InProcessGroup(int numRanks) {
        exchange = new InProcessExchange(numRanks);
        communicators =
                IntStream.range(0, numRanks)
                        .<Communicator>mapToObj(rank -> new InProcessCommunicator(rank, exchange))
                        .toList();
    }

    /** A group of {@code numRanks} ranks. */
    public static InProcessGroup of(int numRanks) {
        if (numRanks < 1) {
            throw new IllegalArgumentException("numRanks=" + numRanks + " must be at least 1");
        }
        return new InProcessGroup(numRanks);
    }

    /** Number of ranks. */
    public int size() {
        return communicators.size();
    }

    /** The communicator of one rank. */
    public Communicator communicator(int rank) {
        if (rank < 0 || rank >= size()) {
            throw new IllegalArgumentException(
                    "rank=" + rank + " is not in [0, numRanks=" + size() + ")");
        }
        return communicators.get(rank);
    }

    /** What one rank does. */
    @FunctionalInterface
    public interface RankTask {
        /** Runs as the rank of {@code communicator}. */
        void run(Communicator communicator) throws Exception;
    }

    /**
     * Runs {@code task} once for each rank, each on its own thread, and waits until these threads
     * have ended. A rank that throws leaves the group, as with {@link Communicator#fail}: waits for
     * it end at once. The next {@code run} takes it back.
     *
     * @throws RankFailedException if any rank failed; its cause is the first failure, the others
     *     are suppressed
     * @throws InterruptedException if the caller is interrupted; the ranks are interrupted too
     */
    public void run(RankTask task) throws InterruptedException {
        exchange.readmit();
        RankFailures failures = new RankFailures();
        List<Thread> threads = new ArrayList<>();
        for (Communicator communicator : communicators) {
            threads.add(
                    Thread.ofPlatform()
                            .name("deepep-rank-" + communicator.rank())
                            .daemon()
                            .start(
                                    () -> {
                                        try {
                                            task.run(communicator);
                                        } catch (Throwable failure) {
                                            failures.add(communicator.rank(), failure);
                                            communicator.fail(failure);
                                        }
                                    }));
        }
        try {
            for (Thread thread : threads) {
                thread.join();
            }
        } catch (InterruptedException interrupted) {
            threads.forEach(Thread::interrupt);
            throw interrupted;
        }
        failures.throwIfAny();
    }

    /**
     * Ends the group. Calls that still wait for a rank fail. Buffers that were left open by ranks
     * whose threads have ended are closed, with a warning.
     */
    @Override
    public void close() {
        exchange.close();
    }
}
