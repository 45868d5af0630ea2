package io.deepep.normal;

/**
 * A 64-bit word that ranks exchange: {@code epoch | value << 32}, stored at once, so that a value
 * needs no flag. Epochs are those of calls, 32 bits that wrap; a word of a later epoch than one
 * waits for comes from a rank that is out of step.
 */
public final class Word {
    private Word() {}

    /** The word. */
    public static long of(int epoch, int value) {
        return (long) value << Integer.SIZE | Integer.toUnsignedLong(epoch);
    }

    /** The call that it belongs to. */
    public static int epoch(long word) {
        return (int) word;
    }

    /** What it says. */
    public static int value(long word) {
        return (int) (word >>> Integer.SIZE);
    }

    /** How many calls it is ahead of {@code epoch}; negative if it is of an earlier one. */
    public static int ahead(long word, int epoch) {
        return epoch(word) - epoch;
    }
}
