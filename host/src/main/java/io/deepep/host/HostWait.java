package io.deepep.host;

import io.deepep.error.DeepEpTimeoutException;
import java.util.Arrays;
import java.util.concurrent.locks.LockSupport;

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

    private final int rank;
    private final HostDoorbell doorbell;
    private final long timeoutNanos;
    private long[] waited = new long[8];
    private long since;
    private int idles;

    /** Waits of {@code rank}, each at most {@code timeoutNanos} without progress. */
    public HostWait(int rank, HostDoorbell doorbell, long timeoutNanos) {
        this.rank = rank;
        this.doorbell = doorbell;
        this.timeoutNanos = timeoutNanos;
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
        return since != 0 && System.nanoTime() - since > timeoutNanos;
    }

    /** The time allowed without progress, in nanoseconds. */
    public long timeoutNanos() {
        return timeoutNanos;
    }

    /** Waits a little without a deadline check. */
    public void pause() {
        if (since == 0) {
            since = System.nanoTime();
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
    }

    /**
     * Waits a little.
     *
     * @throws DeepEpTimeoutException if nothing came for the time allowed
     */
    public void idle(int peer, String phase, long expected, long observed) {
        long start = System.nanoTime();
        pause();
        long now = System.nanoTime();
        addWaited(peer, now - start);
        if (now - since > timeoutNanos) {
            throw new DeepEpTimeoutException(rank, peer, phase, expected, observed, timeoutNanos);
        }
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

    /**
     * Waits until the flag at {@code offset} of this rank's memory is at least {@code value}; pairs
     * with {@link HostHeap#signal}.
     */
    public void untilAtLeast(HostHeap heap, long offset, long value, int peer, String phase) {
        progress();
        long seen = heap.flag(offset);
        while (seen < value) {
            idle(peer, phase, value, seen);
            seen = heap.flag(offset);
        }
    }
}
