package io.deepep.spi;

/** What a rank was waiting for when something went wrong: {@code Phase} for kernels. */
public enum FaultPhase implements KernelEnum {
    /** Nothing yet. */
    NONE("start"),
    /** The headers that open a call. */
    HEADER("header"),
    /** What travels beside rows. */
    META("metadata"),
    /** The word with which a peer leaves the call. */
    DONE("done"),
    /** The other blocks of the launch. */
    GRID("grid"),
    /** Rows, or room for them. */
    ROWS("rows"),
    /** Slots that a peer has yet to free. */
    SLOTS("slots");

    private final String text;

    FaultPhase(String text) {
        this.text = text;
    }

    /** Whether the ranks that are waited for have yet to begin the call, or to end one before. */
    public boolean begins() {
        return this == HEADER || this == SLOTS;
    }

    /** The phase with that number; {@link #NONE} for one that has no meaning. */
    public static FaultPhase of(int value) {
        return value >= 0 && value < values().length ? values()[value] : NONE;
    }

    /** Its name in messages. */
    public String text() {
        return text;
    }
}
