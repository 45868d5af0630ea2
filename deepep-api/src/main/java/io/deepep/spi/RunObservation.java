package io.deepep.spi;

/** Describes one run of an {@link Operation} to observers. */
@FunctionalInterface
public interface RunObservation {
    /**
     * Fills in what the run moved, as far as the host knows without waiting for a device. Called
     * once, before the second next run of the operation, unless the run failed.
     *
     * @param completed whether {@link Operation#complete} of the run has ended, so that everything
     *     is known
     */
    void describe(RecordedFacts facts, boolean completed);
}
