package io.deepep;

import io.deepep.error.Departure;
import io.deepep.error.RankMismatchException;
import io.deepep.spi.CommunicatorProvider;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;

/**
 * One rank's end of a group of numbered ranks that can exchange small messages. A {@link Buffer}
 * uses it to meet the other ranks and to learn which of them are gone, never for the rows of
 * dispatch and combine.
 *
 * <p>{@link #allGather}, {@link #barrier} and {@link #exchangeReferences} are collective: all ranks
 * call them, in the same order, each on one thread at a time. The ranks are threads of one JVM
 * ({@link InProcessGroup}) or processes ({@link #fromEnvironment}).
 */
public interface Communicator extends AutoCloseable {
    /**
     * Joins the group of processes that {@code deepep launch}, torchrun, mpirun or srun started
     * together with this one. The launcher's environment variables give this process its rank.
     * Collective.
     *
     * <pre>{@code
     * try (Communicator communicator = Communicator.fromEnvironment(Duration.ofMinutes(2));
     *         Buffer buffer = Buffer.builder(communicator)
     *                 .device(Device.cuda(communicator.localRank()))
     *                 .normal(limits)
     *                 .open()) { ... }
     * }</pre>
     *
     * <p>Needs the artifact {@code deepep-communicator}; its {@code ProcessEnvironment} lists the
     * variables.
     *
     * @param timeout how long to wait for the other ranks
     * @throws IllegalArgumentException if variables are missing or contradict each other
     * @throws io.deepep.error.DeepEpTimeoutException if a rank does not come in time; it is named
     * @throws io.deepep.error.RankMismatchException if the group refuses this process
     * @throws io.deepep.error.DeepEpUnavailableException if the group cannot be reached from here
     */
    static Communicator fromEnvironment(Duration timeout) {
        return CommunicatorProvider.load().open(System.getenv(), timeout);
    }

    /** This rank, 0 to size - 1. */
    int rank();

    /** Number of ranks. */
    int size();

    /**
     * The number of this rank among those on its host, from 0; engines choose the rank's GPU by it.
     */
    default int localRank() {
        return rank();
    }

    /** Number of ranks on this rank's host. */
    default int localSize() {
        return size();
    }

    /**
     * Sends this rank's message to all ranks, and returns the messages of all, in rank order.
     *
     * @param message any number of bytes, which may differ between ranks
     * @param timeout how long to wait for the others
     * @throws io.deepep.error.DeepEpTimeoutException if a rank does not come in time; it is named
     * @throws io.deepep.error.DeepEpUnavailableException if the others have taken this rank for
     *     lost, because its process was stopped
     */
    List<byte[]> allGather(byte[] message, Duration timeout);

    /**
     * Waits for all ranks.
     *
     * @throws io.deepep.error.DeepEpTimeoutException if a rank does not come in time; it is named
     * @throws RankMismatchException if a rank has a message to exchange instead
     */
    default void barrier(Duration timeout) {
        List<byte[]> messages = allGather(new byte[0], timeout);
        for (int rank = 0; rank < messages.size(); rank++) {
            if (messages.get(rank).length > 0) {
                throw RankMismatchException.ofCall("barrier", rank);
            }
        }
    }

    /**
     * Whether {@code rank} is believed to be alive. Thread-safe, and cheap enough to call while
     * waiting. A thread that sees here that a rank has left also sees everything that the rank
     * stored before it left; a wait for the rank should therefore look once more before it gives
     * up.
     */
    boolean isAlive(int rank);

    /**
     * The ranks that are gone and why, in the order in which this rank learned of them. The list is
     * a snapshot; the call is as cheap as {@link #isAlive} and orders memory in the same way.
     */
    default List<Departure> departures() {
        return IntStream.range(0, size())
                .filter(rank -> !isAlive(rank))
                .mapToObj(rank -> Departure.lost(rank, "it is no longer alive"))
                .toList();
    }

    /**
     * Runs {@code action} on a thread of the group soon after each departure, and after a rank that
     * was gone is taken back, once {@link #departures} shows it. This is for waits that cannot poll
     * {@link #isAlive}, such as those of kernels on a GPU; in a group that ignores the action, as
     * the default does, they end only with their time-outs.
     *
     * @param action must be short and must not wait
     * @return removes the action, which may still be running at that time
     */
    default Runnable onDeparture(Runnable action) {
        return () -> {};
    }

    /** Whether all ranks are threads of this JVM, so that {@link #exchangeReferences} works. */
    default boolean isInProcess() {
        return false;
    }

    /**
     * Shares this rank's object with all ranks, and returns the objects of all, in rank order, by
     * reference.
     *
     * @throws UnsupportedOperationException unless {@link #isInProcess()}
     */
    default List<Object> exchangeReferences(Object mine, Duration timeout) {
        throw new UnsupportedOperationException(
                "the ranks of " + this + " are in several processes; use allGather");
    }

    /**
     * Leaves the group because this rank cannot continue, and tells the others why: their waits for
     * this rank end at once with a {@link io.deepep.error.DeepEpTimeoutException} that names it and
     * {@code cause}. {@link InProcessGroup#run} calls this when a rank throws; a process calls it
     * itself:
     *
     * <pre>{@code
     * try (Communicator communicator = Communicator.fromEnvironment(Duration.ofMinutes(2))) {
     *     try {
     *         work(communicator);
     *     } catch (Throwable failure) {
     *         communicator.fail(failure);
     *         throw failure;
     *     }
     * }
     * }</pre>
     */
    default void fail(Throwable cause) {
        close();
    }

    /**
     * Runs {@code action} when the group ends: a group of threads uses this to release what its
     * ranks left open. Other groups ignore the action, as the default does, because the end of a
     * process releases everything.
     *
     * @return removes the action, once the rank has released its resources itself
     */
    default Runnable atEnd(Runnable action) {
        return () -> {};
    }

    /** Leaves the group without waiting for the others. */
    @Override
    void close();
}
