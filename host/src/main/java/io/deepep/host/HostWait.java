package io.deepep.host;

import io.deepep.error.DeepEpTimeoutException;
import io.deepep.error.Departure;
import io.deepep.spi.CallTimeouts;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;

/**
 * How a rank thread waits: a few spins, then parked until its doorbell rings. One instance per
 * rank; not reentrant.
 *
 * <pre>{@code
 * wait.start();
 * while (!done()) {
 *     if (doWork()) wait.progress(); else wait.idle(peer, "dispatch.data", expected, observed);
 * }
 * }</pre>
 */
public final class HostWait {
    private static final int SPINS = 64;
    private static final long MAX_PARK_NANOS = 500_000;

    /** Between two questions who is gone; a wait that ends sooner asks none. */
    private static final long ASK_NANOS = 1_000_000;

    /** How often at least a wait looks around within its time, unless its process is stopped. */
    private static final int LOOKS = 8;

    /** A machine that is busy may not run it for so long. */
    private static final long BUSY_NANOS = 100_000_000;

    private final int rank;
    private final HostDoorbell doorbell;
    private final CallTimeouts timeouts;
    private long timeoutNanos;

    /** What passes between two looks beyond this, the process was stopped. */
    private long mostBetweenLooks;

    private long stoppedNanos;
    private final Supplier<List<Departure>> departures;
    private long[] waited = new long[8];
    private long since;
    private long looked;
    private long asked;
    private List<Departure> known = List.of();
    private int idles;

    /** Waits of {@code rank} for ranks that never go. */
    public HostWait(int rank, HostDoorbell doorbell, long timeoutNanos) {
        this(rank, doorbell, new CallTimeouts(Duration.ofNanos(timeoutNanos), null), List::of);
    }

    /**
     * Waits of {@code rank}, not for ranks that are gone.
     *
     * @param timeouts what calls allow if they do not say it themselves; until {@link #allow}, a
     *     wait lasts as long as one within a call, without progress
     * @param departures {@link io.deepep.Communicator#departures}
     */
    public HostWait(
            int rank,
            HostDoorbell doorbell,
            CallTimeouts timeouts,
            Supplier<List<Departure>> departures) {
        this.rank = rank;
        this.doorbell = doorbell;
        this.timeouts = timeouts;
        allow(timeouts.nanos());
        this.departures = departures;
    }

    /** What calls allow if they do not say it themselves. */
    public CallTimeouts timeouts() {
        return timeouts;
    }

    /** From now on, waits last so long at most: each part of a call has a time-out of its own. */
    public void allow(long nanos) {
        allow(nanos, nanos);
    }

    /** The same where the caller gives a part of the wait no longer than {@code part}. */
    public void allow(long nanos, long part) {
        timeoutNanos = nanos;
        mostBetweenLooks = Math.max(Math.min(nanos, part) / LOOKS, BUSY_NANOS);
    }

    /** Begins a wait. */
    public void start() {
        progress();
    }

    /** Notes that something came: the time allowed starts again. */
    public void progress() {
        idles = 0;
        since = 0;
    }

    /**
     * Whether the time allowed without progress is over; for callers that go on without the peer.
     */
    public boolean expired() {
        return since != 0 && waitedNanos() > timeoutNanos;
    }

    /**
     * How long it has waited without progress, in nanoseconds. While its process was stopped it has
     * not waited: of what came meanwhile, it has seen nothing yet.
     */
    public long waitedNanos() {
        return since == 0 ? 0 : System.nanoTime() - since;
    }

    /**
     * For how long the process was stopped in all its waits, in nanoseconds: what does not count
     * where a caller measures a time by itself.
     */
    public long stoppedNanos() {
        return stoppedNanos;
    }

    /** The time allowed without progress, in nanoseconds. */
    public long timeoutNanos() {
        return timeoutNanos;
    }

    /** Waits a little without a deadline check. */
    public void pause() {
        if (since == 0) {
            since = System.nanoTime();
            asked = since;
            looked = since;
        }
        idles++;
        if (idles <= SPINS) {
            Thread.onSpinWait();
        } else {
            doorbell.listen(Thread.currentThread());
            LockSupport.parkNanos(this, Math.min(MAX_PARK_NANOS, 2_000L * (idles - SPINS)));
        }
        if (Thread.interrupted()) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(
                    "rank " + rank + " was interrupted while it waited for its peers");
        }
        if (idles > SPINS) {
            look();
        }
    }

    private void look() {
        long now = System.nanoTime();
        if (now - asked > ASK_NANOS) {
            asked = now;
            known = departures.get();
            now = System.nanoTime();
        }
        long stopped = Math.max(0, now - looked - mostBetweenLooks);
        since += stopped;
        stoppedNanos += stopped;
        looked = now;
    }

    /**
     * Waits a little.
     *
     * @throws DeepEpTimeoutException if nothing came for the time allowed, or the rank to come is
     *     gone
     */
    public void idle(int peer, String phase, long expected, long observed) {
        rest(peer, phase);
        if (expired()) {
            throw new DeepEpTimeoutException(rank, peer, phase, expected, observed, timeoutNanos);
        }
    }

    /**
     * Waits a little without a deadline check.
     *
     * @throws DeepEpTimeoutException if the rank to come is gone
     */
    public void rest(int peer, String phase) {
        long start = System.nanoTime();
        requireNotInVain(peer, phase);
        pause();
        addWaited(peer, System.nanoTime() - start);
    }

    /**
     * Ends a wait for a rank that is gone, or that cannot come because another failed.
     *
     * @throws DeepEpTimeoutException naming the rank to blame
     */
    public void requireNotInVain(int peer, String phase) {
        if (known.isEmpty()) {
            return;
        }
        Departure gone = Departure.culprit(known, rank, peer).orElse(null);
        if (gone != null) {
            throw new DeepEpTimeoutException(rank, gone, phase, waitedNanos());
        }
    }

    /**
     * The ranks that were known to be gone when this rank paused last, so that what they stored
     * before was there to be seen since. Empty while waits are short.
     */
    public List<Departure> departures() {
        return known;
    }

    /** Forgets who was known to be gone: somebody may be left out since. */
    public void askAgain() {
        known = List.of();
    }

    /** Notes time that passed because {@code peer} was missing. */
    public void addWaited(int peer, long nanos) {
        if (peer >= waited.length) {
            waited = Arrays.copyOf(waited, 2 * peer);
        }
        waited[peer] += nanos;
    }

    /** Copies the nanoseconds waited for each rank since the beginning into {@code total}, [R]. */
    public void copyWaited(long[] total) {
        System.arraycopy(waited, 0, total, 0, Math.min(waited.length, total.length));
    }
}
