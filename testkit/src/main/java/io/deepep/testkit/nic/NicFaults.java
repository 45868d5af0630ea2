package io.deepep.testkit.nic;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What goes wrong, and how queues progress against each other. May be changed while the card runs.
 *
 * <p>A card serves its queues in random order, a few entries at a time, which is all the order that
 * queues have among each other.
 */
public final class NicFaults {
    private volatile int maxCompletionDelay;
    private volatile boolean stopped;
    private final Map<Integer, Failure> failures = new ConcurrentHashMap<>();

    private record Failure(long index, int syndrome) {}

    /** No faults. */
    public NicFaults() {}

    /**
     * Completions come up to so many turns of the card later than what they tell of; those of other
     * queues overtake them.
     */
    public NicFaults delayCompletions(int maxTurns) {
        maxCompletionDelay = maxTurns;
        return this;
    }

    /** The entry with that index fails with that syndrome, and with it the queue pair. */
    public NicFaults fail(int queue, long index, int syndrome) {
        failures.put(queue, new Failure(index, syndrome));
        return this;
    }

    /** The card executes nothing more, so that queues fill up, until it may go on. */
    public NicFaults stop(boolean stop) {
        stopped = stop;
        return this;
    }

    int maxCompletionDelay() {
        return maxCompletionDelay;
    }

    boolean stopped() {
        return stopped;
    }

    /** The syndrome for the entry, 0 for none. */
    int syndrome(int queue, long index) {
        Failure failure = failures.get(queue);
        return failure != null && failure.index == index ? failure.syndrome : 0;
    }
}
