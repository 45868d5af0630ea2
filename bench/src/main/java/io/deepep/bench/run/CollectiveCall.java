package io.deepep.bench.run;

import io.deepep.CallOptions;
import io.deepep.Event;

/** A collective operation that can be called again and again: what is measured. */
@FunctionalInterface
public interface CollectiveCall {
    /**
     * Calls it as {@code rank}, on that rank's thread.
     *
     * @return the event of the result
     */
    Event call(int rank, CallOptions options);

    /** Whole calls, each over when it returns. */
    default RankTeam.Work synchronous() {
        return rank -> call(rank, CallOptions.sync());
    }
}
