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
    /** One round. The first rank to give up ends it for all who came, so all name the same rank. */
    private static final class Round {
        private final Object[] slots;
        private final boolean[] arrived;
        private int numArrived;
        private boolean over;
        private List<Object> result;
        private int absent;

        Round(int numRanks) {
            slots = new Object[numRanks];
            arrived = new boolean[numRanks];
        }
    }

    private final boolean[] left;
    private Round current;
    private boolean closed;

    InProcessExchange(int numRanks) {
        left = new boolean[numRanks];
        current = new Round(numRanks);
    }

    int size() {
        return left.length;
    }

    synchronized List<Object> exchange(int rank, Object mine, Duration timeout) {
        requireOpen();
        Round round = current;
        if (round.arrived[rank]) {
            throw new IllegalStateException(
                    "rank " + rank + " entered a collective call twice; use one thread per rank");
        }
        round.slots[rank] = mine;
        round.arrived[rank] = true;
        if (++round.numArrived == size()) {
            round.result = new ArrayList<>(Arrays.asList(round.slots));
            end(round);
        }
        await(round, rank, timeout.toNanos());
        if (round.result == null) {
            requireOpen();
            throw new DeepEpTimeoutException(
                    rank,
                    round.absent,
                    "communicator exchange",
                    size(),
                    round.numArrived,
                    timeout.toNanos());
        }
        return round.result;
    }

    private synchronized void await(Round round, int rank, long timeoutNanos) {
        long deadline = System.nanoTime() + timeoutNanos;
        try {
            while (!round.over) {
                long remaining = deadline - System.nanoTime();
                int absent = absentRank(round);
                if (remaining <= 0 || closed || left[absent]) {
                    round.absent = absent;
                    end(round);
                } else {
                    wait(remaining / 1_000_000, (int) (remaining % 1_000_000));
                }
            }
        } catch (InterruptedException interrupted) {
            if (!round.over) {
                round.slots[rank] = null;
                round.arrived[rank] = false;
                round.numArrived--;
            }
            Thread.currentThread().interrupt();
            throw new IllegalStateException(
                    "rank " + rank + " was interrupted in a collective call", interrupted);
        }
    }

    private void end(Round round) {
        round.over = true;
        current = new Round(size());
        notifyAll();
    }

    /** A rank that has not come, preferably one that has left the group for good. */
    private int absentRank(Round round) {
        int absent = -1;
        for (int rank = 0; rank < size(); rank++) {
            if (!round.arrived[rank] && (absent < 0 || (left[rank] && !left[absent]))) {
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
