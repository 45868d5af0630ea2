package io.deepep.bench.chaos;

/** How a new process comes in the place of one that was killed. */
public enum Return {
    /** In a new group, in which all ranks open new buffers. */
    GROUP,
    /** In the buffers that the others have open, where they had opened them before the kill. */
    REPLACE
}
