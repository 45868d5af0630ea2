package io.deepep.normal;

import io.deepep.spi.KernelEnum;

/**
 * The words of a done flag, by which a rank tells the others of its node how it left a call, and of
 * an ending, by which it tells its contacts on other nodes. The words before {@link #WAITING} are
 * written together, the flag last.
 */
public enum DoneWord implements KernelEnum {
    /** How the rank left which call. */
    FLAG("epoch | code << 32"),
    /** What the code is about. */
    DETAIL("if the code is not kOk: whom the rank gave up on, or rows"),
    /** The rank that the fault is about. */
    CULPRIT("the rank that the code is about"),
    /** The first of the calls without success that this one ends. */
    SINCE("the first of the calls without kOk that this one ends"),
    /** That the rank waits itself. */
    WAITING("epoch | beat << 32: for which beat others have yet to begin, or 0"),
    /** A note of the reader. */
    HEARD("its reader's: beat | own beat << 32, when that changed");

    private final String comment;

    DoneWord(String comment) {
        this.comment = comment;
    }

    @Override
    public String comment() {
        return comment;
    }

    /** Of the word from the first one, in bytes. */
    public long offset() {
        return (long) ordinal() * Long.BYTES;
    }
}
