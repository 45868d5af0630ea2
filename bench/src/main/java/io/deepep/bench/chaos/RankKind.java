package io.deepep.bench.chaos;

/** What a rank is. */
public enum RankKind {
    /** A thread of this process. */
    THREADS,
    /** A process of its own. */
    PROCESSES
}
