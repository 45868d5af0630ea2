package io.deepep.lowlatency;

import java.util.List;

/**
 * The two banks of a rank, which its dispatches take in turn. Which one a dispatch takes is decided
 * when it is begun, so that a graph finds its results where they were when it was captured.
 *
 * @param <B> a backend's banks
 */
public final class Banks<B extends Bank> {
    /** How many results are alive. */
    public static final int COUNT = 2;

    /** Nobody makes so many dispatches between two cleans. */
    private static final int GENERATION_SHIFT = 40;

    private final List<B> banks;
    private long dispatches;
    private int generation;

    /** The banks of a rank that has dispatched nothing. */
    public Banks(B even, B odd) {
        banks = List.of(even, odd);
    }

    /** The number that the next dispatch gets, from 1. */
    public long next() {
        return dispatches + 1;
    }

    /**
     * Begins the next dispatch in its bank; returns its number.
     *
     * @throws io.deepep.error.CallOrderException if the bank's dispatch before was not received
     */
    public long open(int numTokens, int numTopk) {
        of(next()).open(next(), numTokens, numTopk);
        return ++dispatches;
    }

    /** Whether a dispatch is sent and not received. */
    public boolean isSent(long dispatch) {
        return of(dispatch).isSent(dispatch);
    }

    /** Counts a dispatch that this rank does not make, though others do. */
    public void skip() {
        dispatches++;
        of(dispatches).skip(dispatches);
    }

    /** A number that no other dispatch has had, before a clean either. */
    long id(long dispatch) {
        return (long) generation << GENERATION_SHIFT | dispatch;
    }

    /** The bank that a dispatch takes. */
    public B of(long dispatch) {
        return at(CallEpoch.parity(dispatch));
    }

    /** The bank of an index from 0. */
    public B at(int index) {
        return banks.get(index);
    }

    /** Forgets all dispatches. */
    public void clean() {
        generation++;
        dispatches = 0;
        banks.forEach(bank -> bank.skip(0));
    }

    /** Counts cleans: handles and hooks of an earlier generation are invalid. */
    public int generation() {
        return generation;
    }
}
