package io.deepep;

/**
 * The routing of one dispatch: which token went to which rank, and to which row there. {@link
 * Buffer#combine} and cached dispatches use it. A handle belongs to the buffer and the plan that it
 * came from: dispatching the plan again replaces the routing, and closing the buffer invalidates
 * the handle.
 */
public interface DispatchHandle {
    /** T: tokens that this rank dispatched. */
    int numTokens();

    /**
     * N: rows that this rank received, one per token, even if the result is expanded; in worst-case
     * mode the number of rows given in the plan.
     */
    int numRecvTokens();

    /** H: hidden size of the dispatch. */
    int hidden();

    /** K: experts per token, 0 if the dispatch had no top-k. */
    int numTopk();

    /** E: number of experts, 0 if the dispatch had no top-k. */
    int numExperts();

    /** Whether received rows are in the expanded layout, grouped by local expert. */
    boolean expanded();
}
