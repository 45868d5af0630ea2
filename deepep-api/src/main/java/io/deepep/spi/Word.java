package io.deepep.spi;

/**
 * A 64-bit word that ranks exchange: {@code epoch | value << 32}, stored at once, so that a value
 * needs no flag. Epochs are those of calls: 32 bits that are never 0, which memory holds before
 * anything was stored there, and even and odd in turn; after 2^32 - 1 comes {@link #FIRST_EPOCH}
 * again. A word that its writer stores in every call and that is of a later epoch than one waits
 * for comes from a rank that is out of step. Of other words this cannot be told: they may be of any
 * call long ago.
 */
public final class Word {
    /** Of the first call. */
    public static final int FIRST_EPOCH = 2;

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

    /** The epoch of the call after that of {@code epoch}; 0 before the first. */
    public static int epochAfter(int epoch) {
        int next = epoch + 1;
        return Integer.compareUnsigned(next, FIRST_EPOCH) < 0 ? FIRST_EPOCH : next;
    }

    /** The lowest number of a call with that epoch, for messages; 0 for none. */
    public static long call(int epoch) {
        return Math.max(0, Integer.toUnsignedLong(epoch) - FIRST_EPOCH + 1);
    }

    /** Whether it is of a later call than {@code epoch}, if its writer stores it in every call. */
    public static boolean isLater(long word, int epoch) {
        return epoch(word) != 0 && epoch(word) - epoch > 0;
    }
}
