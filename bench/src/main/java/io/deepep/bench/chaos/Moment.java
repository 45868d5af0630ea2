package io.deepep.bench.chaos;

/** When it befalls the victim: just before, or while, it does this. */
public enum Moment {
    /** The ranks meet. */
    JOIN,
    /** Buffers are opened. */
    OPEN,
    /** A dispatch. */
    DISPATCH,
    /** Results are checked, between a dispatch and its combine. */
    BETWEEN,
    /** A combine. */
    COMBINE,
    /** Buffers are closed. */
    CLOSE
}
