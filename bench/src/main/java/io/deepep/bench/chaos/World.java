package io.deepep.bench.chaos;

import java.util.List;

/** The ranks of all runs of one model, which stay from run to run. */
interface World extends AutoCloseable {
    /**
     * Has all ranks make a run in a new group.
     *
     * @return an outcome for each rank that took part, in order
     */
    List<Outcome> run(Trial trial);

    /** Ranks that are there. */
    int size();

    /**
     * Brings a rank for each that is gone.
     *
     * @return how many came
     */
    int replace();

    /** What the ranks hold more now than after their first runs. */
    Usage leftOver();

    @Override
    void close();
}
