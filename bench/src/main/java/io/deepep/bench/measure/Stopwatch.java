package io.deepep.bench.measure;

import io.deepep.bench.run.CollectiveCall;
import io.deepep.bench.run.RankTeam;

/** How operations of a backend are timed. */
public interface Stopwatch extends AutoCloseable {
    /**
     * Times an operation on all ranks.
     *
     * @param warmups calls before those that count
     * @param repeats calls that count
     */
    Timing measure(CollectiveCall operation, int warmups, int repeats);

    @Override
    void close();

    /** Whole calls, by the clock of the host. */
    static Stopwatch ofHost(RankTeam team) {
        return new Stopwatch() {
            @Override
            public Timing measure(CollectiveCall operation, int warmups, int repeats) {
                Samples calls = Samples.measure(team, warmups, repeats, operation.synchronous());
                return new Timing(calls, calls, calls);
            }

            @Override
            public void close() {
                // The ranks belong to the session.
            }
        };
    }
}
