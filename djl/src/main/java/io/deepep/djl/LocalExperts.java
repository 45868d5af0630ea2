package io.deepep.djl;

import ai.djl.ndarray.NDArray;

/** The experts that one rank holds. */
@FunctionalInterface
public interface LocalExperts {
    /**
     * Runs one expert.
     *
     * @param localExpert 0 to E/R - 1
     * @param rows [n,H], n at least 1, in the type of the tokens that were exchanged; valid during
     *     this call
     * @return [n,H], attached to the manager of {@code rows} or to a longer-lived one
     */
    NDArray run(int localExpert, NDArray rows);
}
