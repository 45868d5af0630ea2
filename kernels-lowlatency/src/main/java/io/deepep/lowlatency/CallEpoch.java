package io.deepep.lowlatency;

/**
 * How flags and headers tell calls of a kind apart: by 32 bits that are never 0, which memory holds
 * before anything was stored there, and of which neighbours differ in parity. After 2^32 - 1 comes
 * {@link #FIRST} again.
 */
public final class CallEpoch {
    /** Of the first call. */
    public static final int FIRST = 2;

    /** Calls until epochs begin again: an even number. */
    public static final long PERIOD = (1L << Integer.SIZE) - FIRST;

    private CallEpoch() {}

    /** The epoch of a call, which are counted from 1. */
    public static int of(long call) {
        return (int) (Math.floorMod(call - 1, PERIOD) + FIRST);
    }

    /** Which of the two sets of slots the call uses. */
    public static int parity(long call) {
        return of(call) & 1;
    }

    /** The last epoch of the same parity; before the first calls, one that 0 has reached. */
    public static int beforeLast(int epoch) {
        int before = epoch - 2;
        return Integer.compareUnsigned(epoch, FIRST + 2) < 0 ? before - FIRST : before;
    }

    /** Whether a word of {@code seen} is of that call or a later one. */
    public static boolean hasReached(int seen, int epoch) {
        return seen - epoch >= 0;
    }

    /** The lowest number of a call with that epoch, for messages. */
    public static long call(long epoch) {
        return Math.max((epoch & 0xffffffffL) - FIRST + 1, 0);
    }
}
