package io.deepep.lowlatency;

import io.deepep.spi.CallOrderException;

/**
 * The runs of one operation that are sent but not received: at most two, because a third is
 * refused. A clean forgets them.
 */
public final class RunsInFlight {
    private static final long NONE = -1;

    private final Banks<?> banks;
    private int generation;
    private long oldest = NONE;
    private long latest = NONE;

    /** None yet, of a rank with these banks. */
    public RunsInFlight(Banks<?> banks) {
        this.banks = banks;
    }

    /** Notes a run that has been sent, by any number that the two in flight do not share. */
    public void add(long run) {
        forgetCleaned();
        latest = run;
        oldest = oldest != NONE ? oldest : run;
    }

    /** Takes out the oldest run. */
    public long take() {
        forgetCleaned();
        if (oldest == NONE) {
            throw new CallOrderException(
                    "there is nothing to receive; run each receive hook once, and before cleanLowLatencyBuffer()");
        }
        long run = oldest;
        oldest = latest == run ? NONE : latest;
        return run;
    }

    /** Refuses a run that is not the oldest; what none is in flight for, {@link #take} refuses. */
    void requireNext(long run) {
        forgetCleaned();
        if (oldest != NONE && oldest != run) {
            throw new CallOrderException(
                    run < oldest
                            ? "the receive hook of dispatch %s has already run; next is dispatch %s"
                                    .formatted(run, oldest)
                            : ("dispatch %s is not the next of its plan to be received; run the receive hooks of a"
                                            + " plan in the order of its calls, next that of dispatch %s")
                                    .formatted(run, oldest));
        }
    }

    /** The run that was sent last. */
    public long latest() {
        return latest;
    }

    private void forgetCleaned() {
        if (generation != banks.generation()) {
            generation = banks.generation();
            oldest = NONE;
        }
    }
}
