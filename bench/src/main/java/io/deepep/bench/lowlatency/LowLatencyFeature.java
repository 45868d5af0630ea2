package io.deepep.bench.lowlatency;

/** What a case of low-latency mode asks for besides its format and routing. */
enum LowLatencyFeature {
    /** Dispatch and combine only send; hooks receive. */
    HOOK,
    /** Calls return before their work is done. */
    ASYNC,
    /** Expert outputs lie in the buffer's own combine memory. */
    ZERO_COPY,
    /** Received rows and waiting times are counted. */
    STATS,
    /** The combined rows go into memory of the caller. */
    OUT
}
