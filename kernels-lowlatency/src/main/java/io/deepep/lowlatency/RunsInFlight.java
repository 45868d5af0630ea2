package io.deepep.lowlatency;

import io.deepep.error.CallOrderException;

/**
 * The runs of one operation that are sent but not received: at most two, because a third is
 * refused. A clean forgets them, and so does the end of a capture that did not receive them.
 */
public final class RunsInFlight {
    private static final long NONE = -1;

    private final Banks<?> banks;
    private int generation;
    private long oldest = NONE;
    private long latest = NONE;

    /** None yet, of an operation with these banks. */
    public RunsInFlight(Banks<?> banks) {
        this.banks = banks;
    }

    /** Notes a run that has been sent, by its number. */
    public void add(long run) {
        forgetLost();
        latest = run;
        oldest = oldest != NONE ? oldest : run;
    }

    /** The oldest run. */
    public long oldest() {
        forgetLost();
        if (oldest == NONE) {
            throw new CallOrderException(
                    "there is nothing to receive; run each receive hook once, before cleanLowLatencyBuffer, rejoin or"
                            + " admit, and that of a captured call in the same capture");
        }
        return oldest;
    }

    /** Takes out the oldest run. */
    public long take() {
        long run = oldest();
        forgetOldest();
        return run;
    }

    private void forgetOldest() {
        oldest = latest == oldest ? NONE : latest;
    }

    /** Refuses a run that is not the oldest; what none is in flight for, {@link #take} refuses. */
    void requireNext(long run) {
        forgetLost();
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

    private void forgetLost() {
        if (generation != banks.generation()) {
            generation = banks.generation();
            oldest = NONE;
        }
        while (oldest != NONE && !banks.isSent(oldest)) {
            forgetOldest();
        }
    }
}
