package io.deepep.lowlatency.host;

import io.deepep.lowlatency.Bank;

/** What a combine needs when it is received, though its dispatch's bank may hold a later one. */
final class CombineBank extends Bank {
    /** The dispatch whose tokens the combine returns. */
    long dispatch;

    /**
     * The ranks that were given this rank's tokens then; once the combine has been received, those
     * that sent rows for them.
     */
    final boolean[] expected;

    /** The owners that the combine was sent to. */
    final boolean[] reached;

    /** Rows that went to each. */
    final int[] sentRows;

    /** The dispatch that comes next after the combine was begun. */
    long nextDispatch;

    CombineBank(int numRanks) {
        expected = new boolean[numRanks];
        reached = new boolean[numRanks];
        sentRows = new int[numRanks];
    }
}
