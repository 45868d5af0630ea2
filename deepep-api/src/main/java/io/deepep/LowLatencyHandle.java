package io.deepep;

/**
 * The routing of one low-latency dispatch, consumed by {@link Buffer#lowLatencyCombine}. Like the
 * result it comes with, it is valid until the second next low-latency dispatch on the buffer; later
 * use is refused.
 *
 * <p>A request whose dispatches are each combined gives the same result and handle objects again,
 * alternating between two, so that a loop makes no garbage and can reuse its combine requests too.
 * The handle then stands for the later dispatch. One that was never combined stands for its own
 * dispatch alone.
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

    /** The first row of an element of {@link #layoutRange}; says nothing where no row came. */
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
