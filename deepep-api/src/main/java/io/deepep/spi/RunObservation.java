package io.deepep.spi;

/** What observers learn of one run of an {@link Operation}. */
@FunctionalInterface
public interface RunObservation {
    /**
     * Fills in what the run moved, as far as the host knows it without waiting for a device. Called
     * once, before the operation's second next run, unless the run failed.
     *
     * @param completed whether the run's {@link Operation#complete} is over, so that everything is
     *     known
     */
    void describe(RecordedFacts facts, boolean completed);
}
