package io.deepep.testkit.conformance.replacement;

import io.deepep.Communicator;
import io.deepep.error.Departure;
import java.time.Duration;
import java.util.List;
import java.util.function.Supplier;

/**
 * A rank's end of a group in which something happens to the rank when it has met the others so many
 * times: before it meets them once more, or right after.
 */
final class FragileGroup implements Communicator {
    private final Communicator group;
    private final int fatal;
    private final boolean arrives;
    private final Supplier<RuntimeException> blow;
    private int numMeetings;

    /**
     * Of one rank.
     *
     * @param fatal the number of the meeting, from 1, in which it happens; 0 for none
     * @param arrives whether the others have met by then
     * @param blow what happens, and what the rank gets then
     */
    FragileGroup(Communicator group, int fatal, boolean arrives, Supplier<RuntimeException> blow) {
        this.group = group;
        this.fatal = fatal;
        this.arrives = arrives;
        this.blow = blow;
    }

    /** How often the ranks have met. */
    int numMeetings() {
        return numMeetings;
    }

    private <T> T meet(Supplier<T> meeting) {
        boolean isFatal = ++numMeetings == fatal;
        if (isFatal && !arrives) {
            throw blow.get();
        }
        T met = meeting.get();
        if (isFatal) {
            throw blow.get();
        }
        return met;
    }

    @Override
    public List<byte[]> allGather(byte[] message, Duration timeout) {
        return meet(() -> group.allGather(message, timeout));
    }

    @Override
    public void barrier(Duration timeout) {
        meet(
                () -> {
                    group.barrier(timeout);
                    return true;
                });
    }

    @Override
    public List<Object> exchangeReferences(Object mine, Duration timeout) {
        return meet(() -> group.exchangeReferences(mine, timeout));
    }

    @Override
    public int rank() {
        return group.rank();
    }

    @Override
    public int size() {
        return group.size();
    }

    @Override
    public int localRank() {
        return group.localRank();
    }

    @Override
    public int localSize() {
        return group.localSize();
    }

    @Override
    public boolean isAlive(int rank) {
        return group.isAlive(rank);
    }

    @Override
    public List<Departure> departures() {
        return group.departures();
    }

    @Override
    public Runnable onDeparture(Runnable action) {
        return group.onDeparture(action);
    }

    @Override
    public boolean isInProcess() {
        return group.isInProcess();
    }

    @Override
    public void fail(Throwable cause) {
        group.fail(cause);
    }

    @Override
    public Runnable atEnd(Runnable action) {
        return group.atEnd(action);
    }

    @Override
    public void close() {
        group.close();
    }
}
