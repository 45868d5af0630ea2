package io.deepep.lowlatency;

import io.deepep.error.CallOrderException;
import java.util.List;

/**
 * The two banks that a rank's calls of a kind take in turn. Which one a call takes is decided when
 * it is begun, so that a graph finds its results where they were when it was captured.
 *
 * @param <B> a backend's banks
 */
public final class Banks<B extends Bank> {
    /** How many results are alive. */
    public static final int COUNT = 2;

    /** Nobody makes so many calls between two cleans. */
    private static final int GENERATION_SHIFT = 40;

    private final Kind kind;
    private final List<B> banks;
    private long calls;
    private int generation;

    /** The banks of a rank that has made no calls. */
    public Banks(Kind kind, B even, B odd) {
        this.kind = kind;
        this.banks = List.of(even, odd);
    }

    /** The number that the next call gets, from 1. */
    public long next() {
        return calls + 1;
    }

    /**
     * Begins the next call in its bank; returns its number.
     *
     * @throws CallOrderException if the bank's call before was not received
     */
    public long open() {
        B bank = of(next());
        if (bank.isSent()) {
            throw new CallOrderException(
                    "%1$s %2$s has been sent but not received; run its receive hook before the second %1$s after it"
                            .formatted(kind.text(), bank.call()));
        }
        bank.open(next());
        return ++calls;
    }

    /** Whether a call is sent and not received. */
    boolean isSent(long call) {
        return of(call).isSent() && of(call).call() == call;
    }

    /** Counts a call that this rank does not make, though others do. */
    public void skip() {
        calls++;
        of(calls).skip(calls);
    }

    /** A number that no other call of the kind has had, before a clean either. */
    public long id(long call) {
        return (long) generation << GENERATION_SHIFT | call;
    }

    /** The bank that a call takes. */
    public B of(long call) {
        return at(CallEpoch.parity(call));
    }

    /** The bank of an index from 0. */
    public B at(int index) {
        return banks.get(index);
    }

    /** Forgets all calls. */
    public void clean() {
        generation++;
        calls = 0;
        banks.forEach(bank -> bank.skip(0));
    }

    /** Counts cleans: handles and hooks of an earlier generation are invalid. */
    int generation() {
        return generation;
    }
}
