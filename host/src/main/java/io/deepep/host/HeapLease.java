package io.deepep.host;

import java.lang.ref.Cleaner;

/**
 * One rank's share in memory: given back when the rank closes, or, with a warning, when nobody can
 * reach its heaps any more.
 */
final class HeapLease implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger(HeapLease.class.getName());
    private static final Cleaner CLEANER = Cleaner.create();

    private final Share share;
    private final Cleaner.Cleanable cleanable;

    /** A share of {@code rank}'s, given back by {@code release}, which must not refer to heaps. */
    HeapLease(int rank, Runnable release) {
        share = new Share(rank, release);
        cleanable = CLEANER.register(this, share);
    }

    /** Knows not its lease, which could never become unreachable otherwise. */
    private static final class Share implements Runnable {
        private final int rank;
        private final Runnable release;
        private volatile boolean closed;

        Share(int rank, Runnable release) {
            this.rank = rank;
            this.release = release;
        }

        @Override
        public void run() {
            if (!closed) {
                LOG.log(
                        System.Logger.Level.WARNING,
                        "rank {0} did not close its buffer, which is now unreachable; its memory is released",
                        rank);
            }
            release.run();
        }
    }

    /** Runs {@code action}, which must not refer to heaps, when nobody can reach these any more. */
    void whenUnreachable(Runnable action) {
        CLEANER.register(this, action);
    }

    /** Idempotent. */
    @Override
    public void close() {
        share.closed = true;
        cleanable.clean();
    }
}
