package io.deepep;

import io.deepep.error.Departure;
import io.deepep.spi.CommunicatorProvider;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;

/**
 * What a {@link Buffer} needs to start: a numbered group that can exchange small messages. Used
 * only when buffers are opened and closed, never by dispatch and combine.
 *
 * <p>One instance belongs to one rank. {@link #allGather}, {@link #barrier} and {@link
 * #exchangeReferences} are collective: all ranks call them, in the same order. Implementations are
 * in-process ({@link InProcessGroup}) or between processes ({@link #fromEnvironment}).
 */
public interface Communicator extends AutoCloseable {
    /**
     * Joins the group of the processes that {@code deepep launch}, torchrun, mpirun or srun started
     * together with this one, as the rank that the launcher's variables name; collective.
     *
     * <pre>{@code
     * try (Communicator communicator = Communicator.fromEnvironment(Duration.ofMinutes(2));
     *         Buffer buffer = Buffer.builder(communicator)
     *                 .device(Device.cuda(communicator.localRank()))
     *                 .normal(limits)
     *                 .open()) { ... }
     * }</pre>
     *
     * <p>Needs the artifact {@code deepep-communicator}, whose {@code ProcessEnvironment} lists the
     * variables.
     *
     * @param timeout how long to wait for the other ranks
     * @throws IllegalArgumentException if variables are missing or contradict each other
     * @throws io.deepep.error.DeepEpTimeoutException naming a rank that did not come
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

    /** The number of this rank among those on its host, from 0; it chooses the rank's GPU. */
    default int localRank() {
        return rank();
    }

    /** Number of ranks on this rank's host. */
    default int localSize() {
        return size();
    }

    /**
     * Gives every rank the messages of all, in rank order.
     *
     * @param message of this rank; any length, which may differ between ranks
     * @param timeout how long to wait for the others
     * @throws io.deepep.error.DeepEpTimeoutException naming a rank that did not come
     */
    List<byte[]> allGather(byte[] message, Duration timeout);

    /**
     * Waits for all ranks.
     *
     * @throws io.deepep.error.DeepEpTimeoutException naming a rank that did not come
     */
    default void barrier(Duration timeout) {
        allGather(new byte[0], timeout);
    }

    /**
     * Whether {@code rank} is believed to be alive. Cheap enough to call while waiting. A thread
     * that sees here that a rank has left also sees what that rank stored before; a wait for the
     * rank therefore looks once more before it gives up.
     */
    boolean isAlive(int rank);

    /**
     * The ranks that are gone and why, in the order in which this rank learned of them: a snapshot,
     * as cheap as {@link #isAlive} and with the same memory ordering.
     */
    default List<Departure> departures() {
        return IntStream.range(0, size())
                .filter(rank -> !isAlive(rank))
                .mapToObj(rank -> Departure.lost(rank, "it is no longer alive"))
                .toList();
    }

    /**
     * Runs {@code action} soon after each departure, once {@link #departures} shows it, on some
     * thread of the group: for waits that cannot ask, such as those of kernels on a GPU. If a group
     * ignores this, such waits end only with their time-outs.
     *
     * @param action short, does not wait
     * @return removes the action, which may still be running
     */
    default Runnable onDeparture(Runnable action) {
        return () -> {};
    }

    /** Whether all ranks are threads of this JVM, so that {@link #exchangeReferences} works. */
    default boolean isInProcess() {
        return false;
    }

    /**
     * Gives every rank the objects of all, in rank order, by reference.
     *
     * @throws UnsupportedOperationException unless {@link #isInProcess()}
     */
    default List<Object> exchangeReferences(Object mine, Duration timeout) {
        throw new UnsupportedOperationException("ranks of " + this + " live in several processes");
    }

    /**
     * Leaves the group because this rank cannot continue, and tells the others why: whatever waits
     * for it ends at once with a {@link io.deepep.error.DeepEpTimeoutException} that names this
     * rank and {@code cause}. {@link InProcessGroup#run} does this for what a rank throws; a
     * process does it itself:
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
     * Runs {@code action} when the group ends. A group of threads releases what its ranks left open
     * when it closes. Other groups ignore this, because the end of a process releases everything.
     *
     * @return removes the action, for a rank that has released its own resources
     */
    default Runnable atEnd(Runnable action) {
        return () -> {};
    }

    /** Leaves the group. Does not wait for the others. */
    @Override
    void close();
}
