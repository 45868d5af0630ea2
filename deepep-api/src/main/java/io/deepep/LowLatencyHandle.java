package io.deepep;

/**
 * The routing of one low-latency dispatch, for {@link Buffer#lowLatencyCombine}. Like the result
 * that it comes with, it is valid until the second next low-latency dispatch on the buffer; later
 * use is refused.
 *
 * <p>If every dispatch of a plan is combined, the plan returns two result and handle objects in
 * turn, so a loop makes no garbage and can reuse its combine plans too. The handle then stands for
 * the later dispatch. A handle that was never combined stands only for its own dispatch.
 */
public interface LowLatencyHandle {
    /** I32 [El, R*maxTokens]: index, at its source rank, of the token in each row. */
    Tensor srcInfo();

    /**
     * I64 [El,R]: for each local expert and source rank {@code begin << 32 | count}, see {@link
     * #rangeBegin} and {@link #rangeCount}: rows {@code begin} to {@code begin + count - 1} came
     * from it.
     */
    Tensor layoutRange();

    /** An element of {@link #layoutRange}. */
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

    /** T: tokens this rank dispatched. */
    int numTokens();

    /** K: experts per token. */
    int numTopk();
}
