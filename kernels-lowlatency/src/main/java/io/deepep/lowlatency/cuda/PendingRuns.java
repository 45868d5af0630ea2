package io.deepep.lowlatency.cuda;

import io.deepep.spi.CallOrderException;

/**
 * The runs of one operation that are sent but not received, by their bank or run number: at most
 * two, because a third is refused. A clean forgets them.
 */
final class PendingRuns {
    private static final int NONE = -1;

    private int generation;
    private int oldest = NONE;
    private int latest = NONE;

    /** Notes a run that has been sent; {@code now} counts cleans. */
    void add(int run, int now) {
        forgetCleaned(now);
        latest = run;
        oldest = oldest != NONE ? oldest : run;
    }

    /** Takes out the oldest run. */
    int take(int now) {
        forgetCleaned(now);
        if (oldest == NONE) {
            throw new CallOrderException(
                    "nothing is left to receive; run each receive hook once, before a clean");
        }
        int run = oldest;
        oldest = latest == run ? NONE : latest;
        return run;
    }

    private void forgetCleaned(int now) {
        if (generation != now) {
            generation = now;
            oldest = NONE;
        }
    }
}
