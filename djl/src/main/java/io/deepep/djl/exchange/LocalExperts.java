package io.deepep.djl.exchange;

import ai.djl.ndarray.NDArray;
import io.deepep.djl.SwiGluExperts;

/**
 * The experts of a rank, run all at once on the rows that arrived for them: {@link SwiGluExperts},
 * {@link #each}, or an engine's own.
 */
@FunctionalInterface
public interface LocalExperts {
    /** Experts that are run one at a time. */
    @FunctionalInterface
    interface One {
        /**
         * Runs one expert.
         *
         * @param localExpert 0 to E/R - 1
         * @param rows [n,H], n at least 1; valid during this call
         * @return [n,H], attached to the manager of {@code rows} or to a longer-lived one
         */
        NDArray run(int localExpert, NDArray rows);
    }

    /**
     * Runs the experts.
     *
     * @param rows the rows that arrived; valid during this call
     * @return the results, of the shape of {@code rows.x()} in any floating-point type, attached to
     *     the manager of {@code rows.x()}; or {@code rows.out()} if they were written there. Rows
     *     without a token may have any values
     */
    NDArray run(ExpertRows rows);

    /**
     * Experts that run one after the other, those without rows not at all. Rows have the type of
     * the tokens that were exchanged.
     */
    static LocalExperts each(One experts) {
        return rows -> rows.each(experts, true);
    }

    /** The same, with rows in the type of {@link ExpertRows#x}. */
    static LocalExperts eachAsArrived(One experts) {
        return rows -> rows.each(experts, false);
    }
}
