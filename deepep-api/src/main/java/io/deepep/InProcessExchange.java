package io.deepep;

import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.Departure;
import io.deepep.error.RankMismatchException;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * The meeting point of an in-process group. In each round, every rank contributes one object and
 * receives those of all.
 */
final class InProcessExchange {
    private static final System.Logger LOG = System.getLogger(InProcessExchange.class.getName());
    private static final String PHASE = "communicator exchange";

    /** So long a rank looks for the others before it sleeps: waking takes about as long. */
    private static final long SPIN_NANOS = 50_000;

    /**
     * One round. The first rank that gives up ends it for all that have arrived, so that all name
     * the same absent rank.
     */
    private static final class Round {
        private final Object[] slots;
        private final boolean[] arrived;
        private int numArrived;
        private List<Object> result;

        /** Set last, so that who sees it without the lock sees the result too. */
        private volatile boolean over;

        private int absent;

        /** The rank that ended it; if {@link #absent} was only late, because its time was over. */
        private int ender = -1;

        /** Why {@link #absent} is gone, or null if it was only late. */
        private Departure departure;

        Round(int numRanks) {
            slots = new Object[numRanks];
            arrived = new boolean[numRanks];
        }
    }

    private final int numRanks;

    /** Whether each rank has a processor to itself. */
    private final boolean spins;

    private Round current;

    /** Replaced, never changed: read without the lock. */
    private volatile List<Departure> departures = List.of();

    private final Set<Runnable> endings = ConcurrentHashMap.newKeySet();
    private final Set<Runnable> listeners = ConcurrentHashMap.newKeySet();
    private volatile boolean closed;

    InProcessExchange(int numRanks) {
        this.numRanks = numRanks;
        spins = numRanks <= Runtime.getRuntime().availableProcessors();
        current = new Round(numRanks);
    }

    /** The end of {@code rank}. */
    Communicator communicator(int rank) {
        return new Member(rank);
    }

    private final class Member implements Communicator {
        private final int rank;

        Member(int rank) {
            this.rank = rank;
        }

        @Override
        public int rank() {
            return rank;
        }

        @Override
        public int size() {
            return numRanks;
        }

        @Override
        public List<byte[]> allGather(byte[] message, Duration timeout) {
            byte[] mine = Objects.requireNonNull(message, "message").clone();
            List<Object> all = exchangeReferences(mine, timeout);
            return IntStream.range(0, all.size()).mapToObj(from -> message(from, all)).toList();
        }

        private static byte[] message(int from, List<Object> all) {
            if (all.get(from) instanceof byte[] message) {
                // The ranks share the references, but not what a rank does to its messages.
                return message.clone();
            }
            throw RankMismatchException.ofCall("allGather", from);
        }

        @Override
        public boolean isInProcess() {
            return true;
        }

        @Override
        public List<Object> exchangeReferences(Object mine, Duration timeout) {
            return exchange(rank, mine, timeout);
        }

        @Override
        public boolean isAlive(int otherRank) {
            return !closed && !isGone(otherRank);
        }

        @Override
        public List<Departure> departures() {
            return departures;
        }

        @Override
        public Runnable onDeparture(Runnable action) {
            listeners.add(action);
            return () -> listeners.remove(action);
        }

        @Override
        public void fail(Throwable cause) {
            depart(Departure.failed(rank, cause));
        }

        @Override
        public Runnable atEnd(Runnable action) {
            endings.add(action);
            return () -> endings.remove(action);
        }

        @Override
        public void close() {
            depart(Departure.left(rank));
        }

        @Override
        public String toString() {
            return "in-process rank " + rank + " of " + numRanks;
        }
    }

    private List<Object> exchange(int rank, Object mine, Duration timeout) {
        Objects.requireNonNull(timeout, "timeout");
        long timeoutNanos = Math.max(0, TimeUnit.NANOSECONDS.convert(timeout)); // or the longest
        long start = System.nanoTime();
        Round round = arrive(rank, mine);
        spin(round, start + Math.min(timeoutNanos, SPIN_NANOS));
        if (!round.over) {
            await(round, rank, start + timeoutNanos);
        }
        if (round.result == null) {
            requireOpen();
            throw timeout(round, rank, System.nanoTime() - start, timeoutNanos);
        }
        return round.result;
    }

    private synchronized Round arrive(int rank, Object mine) {
        requireOpen();
        if (isGone(rank)) {
            throw new IllegalStateException("the communicator of rank " + rank + " is closed");
        }
        Round round = current;
        if (round.arrived[rank]) {
            throw new IllegalStateException(
                    "rank " + rank + " entered a collective call twice; use one thread per rank");
        }
        round.slots[rank] = mine;
        round.arrived[rank] = true;
        if (++round.numArrived == numRanks) {
            round.result = Collections.unmodifiableList(Arrays.asList(round.slots));
            end(round);
        }
        return round;
    }

    private void spin(Round round, long until) {
        while (spins && !round.over && System.nanoTime() - until < 0) {
            Thread.onSpinWait();
        }
    }

    private DeepEpTimeoutException timeout(
            Round round, int rank, long waitedNanos, long timeoutNanos) {
        if (round.departure != null) {
            return new DeepEpTimeoutException(rank, round.departure, PHASE, waitedNanos);
        }
        return rank == round.ender
                ? new DeepEpTimeoutException(
                        rank, round.absent, PHASE, numRanks, round.numArrived, timeoutNanos)
                : DeepEpTimeoutException.givenUp(false, rank, round.absent, PHASE, waitedNanos);
    }

    private synchronized void await(Round round, int rank, long deadline) {
        try {
            while (!round.over) {
                long remaining = deadline - System.nanoTime();
                int absent = absentRank(round);
                Departure departure =
                        isGone(absent)
                                ? Departure.culprit(departures, rank, absent).orElseThrow()
                                : null;
                if (remaining <= 0 || closed || departure != null) {
                    round.absent = absent;
                    round.departure = departure;
                    round.ender = rank;
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
        current = new Round(numRanks);
        round.over = true;
        notifyAll();
    }

    /** A rank that has not arrived, preferably one that is gone. */
    private int absentRank(Round round) {
        int absent = -1;
        for (int rank = 0; rank < numRanks; rank++) {
            if (!round.arrived[rank] && (absent < 0 || (isGone(rank) && !isGone(absent)))) {
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

    private boolean isGone(int rank) {
        return Departure.of(departures, rank) != null;
    }

    /** Records that a rank is gone; only the first reason counts. */
    private void depart(Departure departure) {
        synchronized (this) {
            if (isGone(departure.rank())) {
                return;
            }
            departures = Stream.concat(departures.stream(), Stream.of(departure)).toList();
            notifyAll();
        }
        listeners.forEach(Runnable::run);
    }

    /**
     * Takes back the ranks that failed, for tasks that start again; those that closed stay gone.
     */
    void readmit() {
        synchronized (this) {
            if (departures.stream().allMatch(Departure::isOrderly)) {
                return;
            }
            departures = departures.stream().filter(Departure::isOrderly).toList();
        }
        listeners.forEach(Runnable::run);
    }

    /** Ends all waits, then runs the actions of {@link Communicator#atEnd}. */
    void close() {
        synchronized (this) {
            closed = true;
            notifyAll();
        }
        for (Runnable ending : List.copyOf(endings)) {
            if (endings.remove(ending)) {
                end(ending);
            }
        }
    }

    private static void end(Runnable ending) {
        try {
            ending.run();
        } catch (RuntimeException failure) {
            LOG.log(
                    System.Logger.Level.WARNING,
                    "a rank left something open that cannot be closed",
                    failure);
        }
    }
}
