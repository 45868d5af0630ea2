package io.deepep.djl.exchange;

import ai.djl.ndarray.NDArray;
import io.deepep.djl.SwiGluExperts;

/**
 * The experts that one rank holds, run all at once on the rows that arrived for them: {@link
 * SwiGluExperts}, {@link #each}, or an engine's own.
 */
@FunctionalInterface
public interface LocalExperts {
    /** One expert at a time. */
    @FunctionalInterface
    interface One {
        /**
         * Runs one expert.
         *
         * @param localExpert 0 to E/R - 1
         * @param rows [n,H], n at least 1, in the type of the tokens that were exchanged; valid
         *     during this call
         * @return [n,H], attached to the manager of {@code rows} or to a longer-lived one
         */
        NDArray run(int localExpert, NDArray rows);
    }

    /**
     * Runs the experts.
     *
     * @param rows what arrived; valid during this call
     * @return of the shape of {@code rows.x()}, in any floating type, attached to its manager; rows
     *     that stand for no token may hold anything. {@code rows.out()} if the results were written
     *     there
     */
    NDArray run(ExpertRows rows);

    /** Experts that run one after the other, those without rows not at all. */
    static LocalExperts each(One experts) {
        return rows -> rows.each(experts);
    }
}
