package io.deepep.bench.normal;

/** What a case of normal mode asks for besides its dtype and routing. */
enum NormalFeature {
    /** Routing by top-k indices and weights, which are received too; else by a layout. */
    TOPK,
    /** Calls return before their results are final. */
    ASYNC,
    /** Calls start after an event of the communication stream. */
    PREVIOUS_EVENT,
    /** Received rows are copied out of the buffer. */
    COPY,
    /** A second dispatch reuses the handle of the first, and is what gets combined. */
    CACHED,
    /** The result has room for whatever may arrive. */
    WORST_CASE,
    /** Rows are grouped by local expert. */
    EXPANDED,
    /** The received view itself is combined. */
    COMBINE_IN_PLACE,
    /** Expert outputs are written into the buffer's combine memory, as they travel. */
    COMBINE_BUFFER,
    /** Combined rows travel as FP8. */
    FP8_HOME,
    /** The received weights are summed alongside. */
    WEIGHTS,
    /** One bias. */
    BIAS,
    /** Two biases. */
    TWO_BIASES,
    /** The combined rows go into memory of the caller. */
    OUT,
    /** Everything is done twice with the same plans, and must give the same bits. */
    REPEAT
}
