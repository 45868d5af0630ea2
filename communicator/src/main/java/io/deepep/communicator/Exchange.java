package io.deepep.communicator;

import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.DeepEpUnavailableException;
import io.deepep.error.Departure;
import java.io.ByteArrayOutputStream;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jgroups.util.UUID;

/**
 * What one rank knows of the group: who is there, who has gone for good, and the messages of
 * exchanges by number.
 */
final class Exchange {
    /** Whom a rank waits for that does not wait. */
    static final int NOBODY = -1;

    /** How often at least a wait looks around within its time. */
    private static final int LOOKS = 8;

    private final int rank;
    private final int size;

    /** The process of each rank that has joined, by rank. */
    private final UUID[] joined;

    /** Ranks whose receipt of our farewell is known. */
    private final BitSet farewellReceived = new BitSet();

    private final Map<Long, Round> rounds = new HashMap<>();

    /** Whom ranks that were asked wait for. */
    private final Map<Integer, Integer> awaitedByOthers = new HashMap<>();

    /** Who has taken this rank for lost, or {@link #NOBODY}. */
    private int excludedBy = NOBODY;

    private int awaited = NOBODY;
    private long round = -1;
    private boolean inside;
    private boolean complete;

    /** Replaced, never changed: read without the lock, as the two below. */
    private volatile List<Departure> departures = List.of();

    private volatile BitSet alive = new BitSet();
    private volatile boolean closed;

    private final Set<Runnable> listeners = ConcurrentHashMap.newKeySet();

    /** What has come of one exchange. */
    private static final class Round {
        private final byte[][] messages;
        private final ByteArrayOutputStream[] parts;

        /** Those whose messages are whole. Looked at with each that comes, so it is kept. */
        private final BitSet present = new BitSet();

        Round(int size) {
            messages = new byte[size][];
            parts = new ByteArrayOutputStream[size];
        }

        /** Parts come in order; nothing is allocated for what has only been announced. */
        void receive(int peer, int total, byte[] frame, int offset, int length) {
            if (parts[peer] == null) {
                parts[peer] = new ByteArrayOutputStream(length);
            }
            parts[peer].write(frame, offset, length);
            if (parts[peer].size() >= total) {
                messages[peer] = parts[peer].toByteArray();
                present.set(peer);
            }
        }
    }

    Exchange(int rank, int size, UUID address) {
        this.rank = rank;
        this.size = size;
        joined = new UUID[size];
        setMembers(List.of(address));
    }

    /** The members changed: whoever was there and is missing has gone. */
    synchronized void setMembers(Collection<UUID> members) {
        Set<UUID> now = Set.copyOf(members);
        for (UUID member : now) {
            joined[RankAddress.rank(member)] = member;
        }
        for (int peer = 0; peer < size; peer++) {
            if (peer != rank && joined[peer] != null && !now.contains(joined[peer])) {
                depart(Departure.lost(peer, "its process has ended or does not answer"));
            }
        }
        update();
    }

    private BitSet here() {
        BitSet here = new BitSet();
        for (int peer = 0; peer < size; peer++) {
            here.set(peer, joined[peer] != null);
        }
        return here;
    }

    private void update() {
        BitSet now = here();
        departures.forEach(gone -> now.clear(gone.rank()));
        alive = now;
        notifyAll();
    }

    /**
     * Notes that a rank is gone, for the first reason that is given. Returns whether it is news.
     */
    synchronized boolean depart(Departure departure) {
        boolean news =
                departure.rank() != rank && Departure.of(departures, departure.rank()) == null;
        if (news) {
            departures = Stream.concat(departures.stream(), Stream.of(departure)).toList();
            update();
            listeners.forEach(Runnable::run);
        }
        return news;
    }

    /** Runs {@code action} after each departure, until what is returned has run. */
    Runnable onDeparture(Runnable action) {
        listeners.add(action);
        return () -> listeners.remove(action);
    }

    /**
     * What {@code peer} knows of a departure; it may be a process that was not let in. Returns
     * whether it is news.
     */
    synchronized boolean heard(UUID peer, Departure departure) {
        boolean ofThisGroup = departure.rank() >= 0 && departure.rank() < size;
        return ofThisGroup && mayBeMember(peer) && depart(departure);
    }

    /**
     * The connection to {@code peer} ended without a word. While the group meets, that is the end
     * of its process; later failure detection looks into it.
     */
    synchronized void connectionLost(UUID peer) {
        if (!complete && mayBeMember(peer)) {
            depart(
                    Departure.lost(
                            RankAddress.rank(peer),
                            "its process ended, or the network failed, while the group met"));
        }
    }

    private boolean mayBeMember(UUID peer) {
        int itsRank = RankAddress.rank(peer);
        return RankAddress.size(peer) == size
                && itsRank < size
                && (joined[itsRank] == null || joined[itsRank].equals(peer));
    }

    List<Departure> departures() {
        return departures;
    }

    boolean isAlive(int peer) {
        return !closed && alive.get(peer);
    }

    /** Waits until all ranks are members; a rank that has gone cannot become one. */
    synchronized void awaitAllJoined(Supplier<String> phase, long start, long timeoutNanos) {
        awaitAll(
                () -> departures.isEmpty() ? here() : alive,
                phase,
                start,
                timeoutNanos,
                notHereYet -> {});
    }

    /** Throws if a rank has gone already while this one is still joining. */
    synchronized void requireNobodyGone(long start) {
        if (!departures.isEmpty()) {
            throw timeout(departures.getFirst().rank(), ProcessCommunicator.START, start);
        }
    }

    /** All ranks have met. */
    synchronized void setComplete() {
        complete = true;
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

    /** A message of {@code total} bytes, or the next part of one. */
    synchronized void receive(
            int peer, long itsRound, int total, byte[] frame, int offset, int length) {
        if (itsRound >= round && !closed) {
            round(itsRound).receive(peer, total, frame, offset, length);
            notifyAll();
        }
    }

    /**
     * Waits for the messages of all ranks.
     *
     * @param phase asked only when the wait fails
     * @param ask asks ranks whom they wait for themselves, without waiting; their answers go to
     *     {@link #setAwaited}
     */
    synchronized List<byte[]> await(
            long number,
            Supplier<String> phase,
            long start,
            long timeoutNanos,
            Consumer<BitSet> ask) {
        Round current = round(number);
        awaitAll(() -> current.present, phase, start, timeoutNanos, ask);
        rounds.remove(number);
        return Arrays.asList(current.messages);
    }

    private Round round(long number) {
        return rounds.computeIfAbsent(number, ignored -> new Round(size));
    }

    /**
     * Ranks that are late may be in an exchange before, with more time, and wait for one that has
     * stopped. So before the time is over they are asked. A process that is stopped does not wait:
     * what passes meanwhile does not count.
     */
    private void awaitAll(
            Supplier<BitSet> present,
            Supplier<String> phase,
            long start,
            long timeoutNanos,
            Consumer<BitSet> ask) {
        long look = timeoutNanos / LOOKS + 1;
        long waited = System.nanoTime() - start;
        boolean asked = false;
        awaitedByOthers.clear();
        try {
            for (BitSet here = present.get(); here.cardinality() < size; here = present.get()) {
                requireOpen();
                requireNotExcluded();
                awaited = absentRank(here);
                if (Departure.of(departures, awaited) != null) {
                    throw timeout(awaited, phase.get(), start);
                }
                if (waited >= timeoutNanos) {
                    throw new DeepEpTimeoutException(
                            rank,
                            silentRank(here),
                            phase.get(),
                            size,
                            here.cardinality(),
                            timeoutNanos);
                }
                if (!asked && waited >= timeoutNanos / 2) {
                    asked = true;
                    BitSet missing = (BitSet) alive.clone();
                    missing.andNot(here);
                    ask.accept(missing);
                }
                long before = System.nanoTime();
                wait(Math.min(look, timeoutNanos - waited) / 1_000_000 + 1);
                waited += Math.min(System.nanoTime() - before, 2 * look);
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw interrupted(rank, interrupted);
        } finally {
            awaited = NOBODY;
        }
    }

    static IllegalStateException interrupted(int rank, InterruptedException cause) {
        return new IllegalStateException(
                "rank " + rank + " was interrupted in a collective call", cause);
    }

    /**
     * {@code peer} has taken this rank for lost. Of ranks that lost each other, each goes by what
     * it has seen itself.
     */
    synchronized void setExcluded(int peer) {
        if (excludedBy == NOBODY && Departure.of(departures, peer) == null) {
            excludedBy = peer;
            notifyAll();
        }
    }

    private void requireNotExcluded() {
        if (excludedBy != NOBODY) {
            throw new DeepEpUnavailableException(
                    ("the group is gone for rank %s: rank %s has taken it for lost, because its process did not answer"
                                    + " for longer than the failure time-out, or the network failed")
                            .formatted(rank, excludedBy),
                    "start a new process in its place, and raise DEEPEP_FAILURE_SECONDS on all ranks if a process"
                            + " may be stopped for that long");
        }
    }

    /** Whom this rank waits for, or {@link #NOBODY}. */
    synchronized int awaited() {
        return awaited;
    }

    /** {@code peer} was asked in exchange {@code itsRound} whom it waits for. */
    synchronized void setAwaited(int peer, long itsRound, int awaitedByPeer) {
        if (itsRound == round && awaitedByPeer >= NOBODY && awaitedByPeer < size) {
            awaitedByOthers.put(peer, awaitedByPeer);
        }
    }

    /**
     * Who is to blame for those that are missing: one that does not answer, or else the last in the
     * chain of ranks that wait for each other.
     */
    private int silentRank(BitSet here) {
        BitSet silent = (BitSet) here.clone();
        awaitedByOthers.keySet().forEach(silent::set);
        if (silent.nextClearBit(0) < size) {
            return silent.nextClearBit(0);
        }
        int suspect = absentRank(here);
        BitSet passed = new BitSet();
        for (int next = suspect; next != NOBODY && next != rank && !passed.get(next); ) {
            passed.set(next);
            suspect = next;
            next = awaitedByOthers.getOrDefault(next, NOBODY);
        }
        return suspect;
    }

    private DeepEpTimeoutException timeout(int absent, String phase, long start) {
        Departure culprit = Departure.culprit(departures, rank, absent).orElseThrow();
        return new DeepEpTimeoutException(rank, culprit, phase, System.nanoTime() - start);
    }

    /** The first rank that is missing, preferably one that will not come any more. */
    private int absentRank(BitSet here) {
        return departures.stream()
                .map(Departure::rank)
                .filter(gone -> !here.get(gone))
                .findFirst()
                .orElseGet(() -> here.nextClearBit(0));
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
        BitSet owing = (BitSet) alive.clone();
        owing.clear(rank);
        owing.andNot(farewellReceived);
        return owing.isEmpty();
    }

    private void requireOpen() {
        if (closed) {
            throw new IllegalStateException("the communicator of rank " + rank + " is closed");
        }
    }
}
