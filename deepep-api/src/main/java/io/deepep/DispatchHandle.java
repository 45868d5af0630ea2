package io.deepep;

/**
 * The routing of one dispatch: which token went where, and to which row. {@link Buffer#combine} and
 * cached dispatches use it. It belongs to the buffer and the plan that it came from: dispatching
 * that plan again replaces its routing, and closing the buffer invalidates it.
 */
public interface DispatchHandle {
    /** T: tokens this rank dispatched. */
    int numTokens();

    /**
     * N: rows this rank received, even if the result groups them by expert; in worst-case mode the
     * number of rows that the plan gives.
     */
    int numRecvTokens();

    /** H: hidden size of the dispatch. */
    int hidden();

    /** K: experts per token, 0 if the dispatch had no top-k. */
    int numTopk();

    /** E: number of experts, 0 if the dispatch had no top-k. */
    int numExperts();

    /** Whether received rows are grouped by expert. */
    boolean expanded();
}
