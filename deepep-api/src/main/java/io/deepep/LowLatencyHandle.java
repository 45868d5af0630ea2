package io.deepep;

/**
 * The routing of one low-latency dispatch, for {@link Buffer#lowLatencyCombine}. Like the result
 * that it comes with, it is valid until the buffer's second low-latency dispatch after this one;
 * later use is refused.
 *
 * <p>Replayed graphs write to the memory that their dispatches had when they were captured. So
 * combine an ordinary dispatch, and run its receive hook, before you replay a graph with another
 * one: if a replay has taken its memory, both throw a {@link io.deepep.error.RoutingException}.
 *
 * <p>If every dispatch of a plan is combined, the plan returns two results with their handles
 * alternately, so that a loop makes no garbage and can reuse its combine plans too. Such a handle
 * then stands for the later dispatch. A handle that was never combined stands only for its own
 * dispatch.
 */
public interface LowLatencyHandle {
    /** The index at its source rank of the token in each received row, I32 [El, R*maxTokens]. */
    Tensor srcInfo();

    /**
     * The rows of each local expert that came from each source rank, I64 [El,R]: {@code begin << 32
     * | count} for the rows {@code begin} to {@code begin + count - 1}. See {@link #rangeBegin} and
     * {@link #rangeCount}.
     */
    Tensor layoutRange();

    /** Packs an element of {@link #layoutRange}. */
    static long range(int begin, int count) {
        return (long) begin << 32 | Integer.toUnsignedLong(count);
    }

    /** The first row of an element of {@link #layoutRange}; meaningless if it has no rows. */
    static int rangeBegin(long range) {
        return (int) (range >> 32);
    }

    /** The number of rows of an element of {@link #layoutRange}. */
    static int rangeCount(long range) {
        return (int) range;
    }

    /** T: tokens that this rank dispatched. */
    int numTokens();

    /** K: experts per token. */
    int numTopk();
}
