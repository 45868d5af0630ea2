package io.deepep.normal;

import io.deepep.EpTopology;
import io.deepep.spi.Fault;
import io.deepep.spi.FaultCode;
import java.util.Arrays;
import java.util.BitSet;
import java.util.stream.IntStream;

/**
 * The ranks that a rank leaves out of its calls in normal mode: it neither sends to them nor waits
 * for them. All that go on leave out the same, which they compare in the header of each call.
 */
public final class Masks {
    private static final int[] NONE = {};

    private final boolean[] masked;
    private final Rails rails;
    private final BitSet suspects = new BitSet();
    private int word;

    /** None, as yet. */
    public Masks(EpTopology topology) {
        this.masked = new boolean[topology.numRanks()];
        this.rails = new Rails(topology);
        rails.route(this);
    }

    /** Leaves a rank out, or takes it back; between calls. */
    public void update(int rank, boolean leaveOut) {
        masked[rank] = leaveOut;
        word = wordOfAll();
        rails.route(this);
    }

    /** Whether a rank is left out. */
    public boolean contains(int rank) {
        return masked[rank];
    }

    /** Whether no rank is left out. */
    public boolean isEmpty() {
        return word == 0;
    }

    /** What ranks compare: bit r for rank r, in larger groups a hash; 0 for none. */
    public int word() {
        return word;
    }

    /**
     * Some ranks as bits, from the first one on, 32 to an int: bit r % 32 of int r / 32, 1 for
     * masked.
     */
    public int[] words(int first, int numRanks) {
        int[] words = new int[Math.ceilDiv(numRanks, Integer.SIZE)];
        for (int i = 0; i < numRanks; i++) {
            if (masked[first + i]) {
                words[i / Integer.SIZE] |= 1 << i % Integer.SIZE;
            }
        }
        return words;
    }

    // ---- whom a call that failed shows to be lost ----

    /** Notes a rank that did not come either, as another did not. */
    public synchronized void suspect(int rank) {
        suspects.set(rank);
    }

    /** Notes of a fault whom others have left out, if the call was refused because of that. */
    public void learn(Fault fault) {
        if (fault.code() == FaultCode.HEADER_MISMATCH && fault.k() == HeaderWord.MASKED.value()) {
            for (int rank = 0; rank < masked.length; rank++) {
                if (names(fault.expected() | fault.seen(), rank) && !masked[rank]) {
                    suspect(rank);
                }
            }
        }
    }

    /** The ranks noted since this was asked last. */
    public int[] takeSuspects() {
        if (suspects.isEmpty()) {
            return NONE; // asked after each call: no garbage, no lock
        }
        return takeAll();
    }

    private synchronized int[] takeAll() {
        int[] ranks = suspects.stream().toArray();
        suspects.clear();
        return ranks;
    }

    /** Whether a {@link #word} tells that a rank is left out; a hash tells of none. */
    public boolean names(long maskWord, int rank) {
        return namesRanks() && (maskWord >>> rank & 1) != 0;
    }

    /** Whether a {@link #word} tells who is left out, so that others can adopt it. */
    public boolean namesRanks() {
        return masked.length <= Integer.SIZE;
    }

    /** How ranks on different nodes reach each other without those. */
    public Rails rails() {
        return rails;
    }

    /** [R], 1 for masked; a copy. */
    public int[] toArray() {
        return IntStream.range(0, masked.length).map(rank -> masked[rank] ? 1 : 0).toArray();
    }

    private int wordOfAll() {
        if (masked.length <= Integer.SIZE) {
            return words(0, masked.length)[0];
        }
        boolean any = IntStream.range(0, masked.length).anyMatch(rank -> masked[rank]);
        return any ? Arrays.hashCode(masked) | 1 : 0;
    }

    /** What a {@link #word} of a group says. */
    static Object describe(int word, int numRanks) {
        if (numRanks > Integer.SIZE) {
            return word == 0 ? "none" : "a set with the hash " + Integer.toHexString(word);
        }
        return IntStream.range(0, numRanks)
                .filter(rank -> (word >>> rank & 1) != 0)
                .boxed()
                .toList();
    }
}
