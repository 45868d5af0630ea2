package io.deepep;

import java.util.ArrayList;
import java.util.Collections;
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
        communicators = IntStream.range(0, numRanks).mapToObj(exchange::communicator).toList();
    }

    /**
     * Creates a group.
     *
     * @param numRanks number of ranks, 1 to {@value GroupLimits#MAX_RANKS}
     */
    public static InProcessGroup of(int numRanks) {
        Numbers.requireIn("numRanks", numRanks, 1, GroupLimits.MAX_RANKS);
        return new InProcessGroup(numRanks);
    }

    /** Number of ranks. */
    public int size() {
        return communicators.size();
    }

    /** The communicator of {@code rank}, to be used by that rank's thread. */
    public Communicator communicator(int rank) {
        if (rank < 0 || rank >= size()) {
            throw new IllegalArgumentException(
                    "rank=" + rank + " is not in [0, numRanks=" + size() + ")");
        }
        return communicators.get(rank);
    }

    /** The task of a rank. */
    @FunctionalInterface
    public interface RankTask {
        /** Runs as the rank of {@code communicator}. */
        void run(Communicator communicator) throws Exception;
    }

    /**
     * Runs {@code task} once for each rank, each on a thread of its own, and waits until these
     * threads have ended. A rank that throws, or that gets no thread, leaves the group as by {@link
     * Communicator#fail}, so that waits for it end at once; the next {@code run} takes it back.
     *
     * @throws RankFailedException if a rank failed; its cause is the first failure, and the others
     *     are suppressed exceptions
     * @throws InterruptedException if the caller is interrupted; the ranks' threads are interrupted
     *     too
     */
    public void run(RankTask task) throws InterruptedException {
        exchange.readmit();
        List<RankFailedException> failures = Collections.synchronizedList(new ArrayList<>());
        List<Thread> threads = new ArrayList<>();
        for (Communicator communicator : communicators) {
            try {
                threads.add(
                        Thread.ofPlatform()
                                .name("deepep-rank-" + communicator.rank())
                                .daemon()
                                .start(() -> run(task, communicator, failures)));
            } catch (OutOfMemoryError noThread) { // the others would wait for it
                fail(communicator, noThread, failures);
            }
        }
        try {
            for (Thread thread : threads) {
                thread.join();
            }
        } catch (InterruptedException interrupted) {
            threads.forEach(Thread::interrupt);
            throw interrupted;
        }
        if (!failures.isEmpty()) {
            RankFailedException first = failures.removeFirst();
            failures.forEach(first::addSuppressed);
            // It was made on a rank's thread, and lacks the caller's frames. Without them, Java's
            // launcher of source files prints an error of its own instead.
            first.fillInStackTrace();
            throw first;
        }
    }

    private static void run(
            RankTask task, Communicator communicator, List<RankFailedException> failures) {
        try {
            task.run(communicator);
        } catch (Throwable failure) {
            fail(communicator, failure, failures);
        }
    }

    private static void fail(
            Communicator communicator, Throwable failure, List<RankFailedException> failures) {
        failures.add(new RankFailedException(communicator.rank(), failure));
        communicator.fail(failure);
    }

    /**
     * Closes the group. Calls that still wait for a rank fail. Buffers that ranks left open are
     * closed with a warning, if their threads have ended.
     */
    @Override
    public void close() {
        exchange.close();
    }
}
