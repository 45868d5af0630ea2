package io.deepep.lowlatency;

import io.deepep.spi.Word;

/** How flags and headers tell calls of a kind apart: by epochs, see {@link Word}. */
public final class CallEpoch {
    /** Calls until epochs begin again: an even number. */
    public static final long PERIOD = (1L << Integer.SIZE) - Word.FIRST_EPOCH;

    private CallEpoch() {}

    /** The epoch of a call, which are counted from 1. */
    public static int of(long call) {
        return (int) (Math.floorMod(call - 1, PERIOD) + Word.FIRST_EPOCH);
    }

    /** Which of the two sets of slots the call uses. */
    public static int parity(long call) {
        return of(call) & 1;
    }

    /** The last epoch of the same parity; before the first calls, one that 0 has reached. */
    public static int beforeLast(int epoch) {
        int before = epoch - 2;
        return Integer.compareUnsigned(epoch, Word.FIRST_EPOCH + 2) < 0
                ? before - Word.FIRST_EPOCH
                : before;
    }

    /** Whether a word of {@code seen} is of that call or a later one. */
    public static boolean hasReached(int seen, int epoch) {
        return seen - epoch >= 0;
    }
}
