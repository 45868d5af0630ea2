package io.deepep;

import io.deepep.error.DeepEpTimeoutException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The meeting point of an in-process group: rounds in which every rank leaves one object and takes
 * everybody's.
 */
final class InProcessExchange {
    private final Object[] slots;
    private final boolean[] arrived;
    private final boolean[] left;
    private int numArrived;
    private long round;
    private List<Object> lastRound = List.of();
    private int failedAbsent;
    private int failedArrived;
    private boolean closed;

    InProcessExchange(int numRanks) {
        slots = new Object[numRanks];
        arrived = new boolean[numRanks];
        left = new boolean[numRanks];
    }

    int size() {
        return slots.length;
    }

    synchronized List<Object> exchange(int rank, Object mine, Duration timeout) {
        requireOpen();
        if (arrived[rank]) {
            throw new IllegalStateException(
                    "rank " + rank + " entered a collective call twice; use one thread per rank");
        }
        slots[rank] = mine;
        arrived[rank] = true;
        if (++numArrived == slots.length) {
            finishRound();
            return lastRound;
        }
        awaitRound(rank, timeout.toNanos());
        return lastRound;
    }

    private synchronized void awaitRound(int rank, long timeoutNanos) {
        long waitedRound = round;
        long deadline = System.nanoTime() + timeoutNanos;
        try {
            while (round == waitedRound) {
                long remaining = deadline - System.nanoTime();
                int absent = absentRank();
                if (remaining <= 0 || closed || left[absent]) {
                    failRound(absent);
                } else {
                    wait(remaining / 1_000_000, (int) (remaining % 1_000_000));
                }
            }
        } catch (InterruptedException interrupted) {
            retract(rank);
            Thread.currentThread().interrupt();
            throw new IllegalStateException(
                    "rank " + rank + " was interrupted in a collective call", interrupted);
        }
        if (lastRound == null) {
            requireOpen();
            throw new DeepEpTimeoutException(
                    rank,
                    failedAbsent,
                    "communicator exchange",
                    slots.length,
                    failedArrived,
                    timeoutNanos);
        }
    }

    private void finishRound() {
        lastRound = new ArrayList<>(Arrays.asList(slots));
        nextRound();
    }

    /**
     * The first to give up ends the round for all who came, so that everybody names the same rank.
     */
    private void failRound(int absent) {
        lastRound = null;
        failedAbsent = absent;
        failedArrived = numArrived;
        nextRound();
    }

    private void nextRound() {
        Arrays.fill(slots, null);
        Arrays.fill(arrived, false);
        numArrived = 0;
        round++;
        notifyAll();
    }

    private void retract(int rank) {
        slots[rank] = null;
        arrived[rank] = false;
        numArrived--;
    }

    /**
     * A rank that has not come to the present round, preferably one that has left the group for
     * good.
     */
    private int absentRank() {
        int absent = -1;
        for (int rank = 0; rank < arrived.length; rank++) {
            if (!arrived[rank] && (absent < 0 || (left[rank] && !left[absent]))) {
                absent = rank;
            }
        }
        return absent;
    }

    private void requireOpen() {
        if (closed) {
            throw new IllegalStateException("the in-process group is closed");
        }
    }

    synchronized boolean isAlive(int rank) {
        return !closed && !left[rank];
    }

    synchronized void leave(int rank) {
        left[rank] = true;
        notifyAll();
    }

    synchronized void close() {
        closed = true;
        notifyAll();
    }
}
