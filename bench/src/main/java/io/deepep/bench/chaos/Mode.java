package io.deepep.bench.chaos;

/** Whose exchanges a trial makes. */
public enum Mode {
    /** Normal dispatch and combine. */
    NORMAL,
    /** Low-latency dispatch and combine. */
    LOW_LATENCY
}
