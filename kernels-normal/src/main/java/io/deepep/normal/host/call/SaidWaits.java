package io.deepep.normal.host.call;

import io.deepep.EpTopology;
import io.deepep.host.HostHeap;
import io.deepep.normal.DoneWord;
import io.deepep.normal.Masks;
import io.deepep.spi.CallTimeouts;
import io.deepep.spi.Region;
import io.deepep.spi.Word;
import java.lang.foreign.ValueLayout;

/**
 * What ranks say of their own waits, next to their done flags and endings, and how much longer
 * others wait for them because of that.
 */
final class SaidWaits {
    private static final long WAITING_OFFSET = DoneWord.WAITING.offset();
    private static final long HEARD_OFFSET = DoneWord.HEARD.offset();

    /** How often, within its time, a rank says that others have yet to begin. */
    private static final int BEATS = 8;

    private final EpTopology topology;
    private final HostHeap nvl;
    private final HostHeap rdma;
    private final Region doneFlags;
    private final Region endings;
    private final Masks masks;

    private CallTimeouts timeouts;
    private int epoch;
    private boolean said;
    private boolean saidToWait;
    private int saidBeat;

    SaidWaits(HostNormalState state) {
        topology = state.topology;
        nvl = state.context.nvl();
        rdma = state.context.rdma();
        doneFlags = state.nvlLayout.doneFlags();
        endings = state.rdmaLayout.endings();
        masks = state.masks;
    }

    /** Enters a call. */
    void enter(int ofCall, CallTimeouts ofWaits) {
        epoch = ofCall;
        timeouts = ofWaits;
        said = false;
        saidToWait = false;
    }

    /**
     * What this rank said of its waits ends with the call: by a word as of the call before, which
     * still counts in this one, where others may be about to read what it stored at the end.
     */
    void end() {
        if (said) {
            store(Word.of(epoch - 1, 0));
        }
    }

    /**
     * Says that this rank waits, if it is time to: again and again while others have yet to begin,
     * and once afterwards.
     *
     * @param start whether others have yet to begin
     * @param waitedNanos for how long this rank has waited
     */
    void say(boolean start, long waitedNanos) {
        if (start) {
            int beat = beat();
            if (saidBeat != beat && waitedNanos > shorterNanos() / BEATS) {
                saidBeat = beat;
                store(Word.of(epoch, beat));
            }
        } else if (!saidToWait && waitedNanos > timeouts.nanos() / 2) {
            saidToWait = true;
            store(Word.of(epoch, 0));
        }
    }

    /**
     * The call, and for which beat others have yet to begin it; 0 where all have. Pairs with
     * patience.
     */
    private void store(long word) {
        said = true;
        for (int peer : masks.rails().near()) {
            nvl.signal(peer, doneFlags.at(topology.nvlRank()) + WAITING_OFFSET, word);
        }
        for (int contact : masks.rails().contacts()) {
            rdma.signal(contact, endings.at(topology.rank()) + WAITING_OFFSET, word);
        }
    }

    /**
     * How much longer than usual to wait for a rank, in nanoseconds, because of what it says of its
     * own waits. It may wait in the call before: ranks of other nodes go on without it. One of
     * another node that exchanges no headers with this rank cannot say so here; whoever relays its
     * header waits for it too.
     */
    long patience(int rank) {
        if (masks.contains(rank)) {
            return timeouts.nanos(); // nobody waits for it
        }
        boolean contact = masks.rails().isContact(rank);
        HostHeap heap = contact ? rdma : nvl;
        long at = contact ? endings.at(rank) : doneFlags.at(rank % topology.numNvlRanks());
        long word = heap.flag(at + WAITING_OFFSET);
        // When epochs begin again, one call has no patience for the one before.
        if (Integer.compareUnsigned(epoch - Word.epoch(word), 1) > 0) {
            return 0;
        }
        int itsBeat = Word.value(word);
        if (itsBeat == 0) {
            return timeouts.nanos();
        }
        int now = beat();
        long heard = heap.local().get(ValueLayout.JAVA_LONG, at + HEARD_OFFSET);
        if (Word.epoch(heard) != itsBeat) {
            heap.local().set(ValueLayout.JAVA_LONG, at + HEARD_OFFSET, Word.of(itsBeat, now));
            return timeouts.startNanos();
        }
        return now - Word.value(heard) <= BEATS ? timeouts.startNanos() : 0;
    }

    private long shorterNanos() {
        return Math.max(BEATS, Math.min(timeouts.nanos(), timeouts.startNanos()));
    }

    /** A number that changes {@link #BEATS} times within the shorter time-out; never 0. */
    private int beat() {
        int beat = (int) (System.nanoTime() / (shorterNanos() / BEATS));
        return beat == 0 ? 1 : beat;
    }
}
