package io.deepep.observe;

/** The kinds of operations that are reported to observers. */
public enum CallKind {
    /** Dispatch of normal mode, including cached dispatches. */
    NORMAL_DISPATCH("normal", "dispatch"),
    /** Combine of normal mode. */
    NORMAL_COMBINE("normal", "combine"),
    /** Dispatch of low-latency mode. */
    LOW_LATENCY_DISPATCH("low-latency", "dispatch"),
    /** Combine of low-latency mode. */
    LOW_LATENCY_COMBINE("low-latency", "combine");

    private final String mode;
    private final String operation;

    CallKind(String mode, String operation) {
        this.mode = mode;
        this.operation = operation;
    }

    /** {@code normal} or {@code low-latency}. */
    public String mode() {
        return mode;
    }

    /** {@code dispatch} or {@code combine}. */
    public String operation() {
        return operation;
    }
}
