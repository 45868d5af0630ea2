package io.deepep.communicator;

import io.deepep.error.DeepEpTimeoutException;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/**
 * What one rank knows of the group: who is there, who has gone for good, and the messages of
 * exchanges by number.
 */
final class Exchange {
    private final int rank;
    private final int size;
    private final BitSet joined = new BitSet();
    private final BitSet gone = new BitSet();

    /** Ranks whose receipt of our farewell is known. */
    private final BitSet farewellReceived = new BitSet();

    private final Map<Long, byte[][]> rounds = new HashMap<>();
    private long round = -1;
    private boolean inside;
    private boolean closed;

    Exchange(int rank, int size) {
        this.rank = rank;
        this.size = size;
        joined.set(rank);
    }

    /** The members changed: whoever was there and is missing has gone. */
    synchronized void setMembers(BitSet members) {
        BitSet lost = (BitSet) joined.clone();
        lost.andNot(members);
        lost.clear(rank);
        gone.or(lost);
        joined.or(members);
        notifyAll();
    }

    synchronized void setGone(int peer) {
        gone.set(peer);
        notifyAll();
    }

    synchronized boolean isAlive(int peer) {
        return !closed && joined.get(peer) && !gone.get(peer);
    }

    synchronized void awaitAllJoined(long start, long timeoutNanos) {
        awaitAll(() -> joined, ProcessCommunicator.START, start, timeoutNanos);
    }

    /**
     * Begins the next exchange. Exchanges are matched by number, and one that failed keeps its
     * number, so that ranks that make the same calls stay together.
     */
    synchronized long enter() {
        requireOpen();
        if (inside) {
            throw new IllegalStateException(
                    "rank " + rank + " entered a collective call twice; use one thread per rank");
        }
        inside = true;
        rounds.remove(round);
        return ++round;
    }

    synchronized void leave() {
        inside = false;
    }

    synchronized void receive(int peer, long itsRound, byte[] message) {
        if (itsRound >= round && !closed) {
            messages(itsRound)[peer] = message;
            notifyAll();
        }
    }

    synchronized List<byte[]> await(long awaited, String phase, long start, long timeoutNanos) {
        byte[][] messages = messages(awaited);
        awaitAll(() -> present(messages), phase, start, timeoutNanos);
        rounds.remove(awaited);
        return Arrays.asList(messages);
    }

    private byte[][] messages(long number) {
        return rounds.computeIfAbsent(number, ignored -> new byte[size][]);
    }

    private BitSet present(byte[][] messages) {
        BitSet present = new BitSet();
        for (int peer = 0; peer < size; peer++) {
            present.set(peer, messages[peer] != null);
        }
        return present;
    }

    private void awaitAll(Supplier<BitSet> present, String phase, long start, long timeoutNanos) {
        try {
            BitSet here = present.get();
            while (here.cardinality() < size) {
                requireOpen();
                long elapsed = System.nanoTime() - start;
                int absent = absentRank(here);
                if (gone.get(absent) || elapsed >= timeoutNanos) {
                    long waited = Math.min(elapsed, timeoutNanos);
                    throw new DeepEpTimeoutException(
                            rank, absent, phase, size, here.cardinality(), waited);
                }
                wait((timeoutNanos - elapsed) / 1_000_000 + 1);
                here = present.get();
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(
                    "rank " + rank + " was interrupted in a collective call", interrupted);
        }
    }

    /** The first rank that is missing, preferably one that will not come any more. */
    private int absentRank(BitSet here) {
        BitSet hopeless = (BitSet) gone.clone();
        hopeless.andNot(here);
        return hopeless.isEmpty() ? here.nextClearBit(0) : hopeless.nextSetBit(0);
    }

    /** Ends all calls of this rank. Returns false if that was done before. */
    synchronized boolean close() {
        boolean first = !closed;
        closed = true;
        rounds.clear();
        notifyAll();
        return first;
    }

    synchronized void setFarewellReceived(int peer) {
        farewellReceived.set(peer);
        notifyAll();
    }

    /** Waits until every rank that is still there has all that this rank sent. */
    synchronized void awaitFarewells(long timeoutNanos) throws InterruptedException {
        long start = System.nanoTime();
        long remaining = timeoutNanos;
        while (remaining > 0 && !allKnowFarewell()) {
            wait(remaining / 1_000_000 + 1);
            remaining = timeoutNanos - (System.nanoTime() - start);
        }
    }

    private boolean allKnowFarewell() {
        BitSet owing = (BitSet) joined.clone();
        owing.clear(rank);
        owing.andNot(gone);
        owing.andNot(farewellReceived);
        return owing.isEmpty();
    }

    private void requireOpen() {
        if (closed) {
            throw new IllegalStateException("the communicator of rank " + rank + " is closed");
        }
    }
}
