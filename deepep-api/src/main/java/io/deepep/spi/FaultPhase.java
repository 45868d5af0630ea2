package io.deepep.spi;

/** What a rank was waiting for when a call failed; in kernels, {@code Phase}. */
public enum FaultPhase implements KernelEnum {
    /** The start of the call. */
    NONE("start"),
    /** The headers that open a call. */
    HEADER("header"),
    /** The data that travels beside rows. */
    META("metadata"),
    /** The word with which a peer leaves the call. */
    DONE("done"),
    /** The other blocks of the launch. */
    GRID("grid"),
    /** Rows, or room to send them. */
    ROWS("rows"),
    /** Slots that a peer has not yet freed. */
    SLOTS("slots");

    private final String text;

    FaultPhase(String text) {
        this.text = text;
    }

    /** Whether the peers have not yet begun the call, or not yet ended an earlier one. */
    public boolean begins() {
        return this == HEADER || this == SLOTS;
    }

    /** The phase with the given number; {@link #NONE} if there is no such phase. */
    public static FaultPhase of(int value) {
        return value >= 0 && value < values().length ? values()[value] : NONE;
    }

    /** The name of the phase in messages. */
    public String text() {
        return text;
    }
}
