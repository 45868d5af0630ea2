package io.deepep.bench.run;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * One thread per rank, kept between rounds of work. A round makes no garbage, so that allocation of
 * what it calls can be measured.
 */
public final class RankTeam implements AutoCloseable {
    /** What each rank does in a round. */
    @FunctionalInterface
    public interface Work {
        /** Runs on the thread of {@code rank}. */
        void run(int rank) throws Exception;
    }

    /** What each rank computes in a round. */
    @FunctionalInterface
    public interface Question<T> {
        /** Runs on the thread of {@code rank}. */
        T ask(int rank) throws Exception;
    }

    private final RankSource ranks;
    private final List<Integer> localRanks;
    private final Object starting = new Object();
    private final Object finishing = new Object();
    private final long[] nanos;
    private long slowestNanos;
    private Work work;
    private long round;
    private boolean closed;
    private int running;
    private RankFailure failure;

    private RankTeam(RankSource ranks) {
        this.ranks = ranks;
        this.localRanks = ranks.localRanks();
        this.nanos = new long[ranks.numRanks()];
    }

    /** Starts a thread for each of {@code numRanks} ranks, which have no need of communicators. */
    public static RankTeam start(int numRanks) {
        return start(RankSource.inProcess(numRanks));
    }

    /** Starts a thread for each of those that this process runs. */
    public static RankTeam start(RankSource ranks) {
        RankTeam team = new RankTeam(ranks);
        for (int rank : team.localRanks) {
            int mine = rank;
            Thread.ofPlatform().name("deepep-rank-" + rank).daemon().start(() -> team.serve(mine));
        }
        return team;
    }

    /** R, ranks of other processes included. */
    public int size() {
        return ranks.numRanks();
    }

    /** The ranks that have a thread here. */
    public List<Integer> localRanks() {
        return localRanks;
    }

    /**
     * Runs {@code each} on every local rank and waits for all, those of other processes included.
     *
     * @throws RankFailure if any rank failed
     */
    public void run(Work each) {
        synchronized (finishing) {
            running = localRanks.size();
            failure = null;
        }
        synchronized (starting) {
            work = each;
            round++;
            starting.notifyAll();
        }
        synchronized (finishing) {
            while (running > 0) {
                waitOn(finishing);
            }
        }
        long slowest = 0; // no stream: rounds make no garbage, which benchmarks would count
        for (long time : nanos) {
            slowest = Math.max(slowest, time);
        }
        slowestNanos = ranks.meet(slowest, failure);
    }

    /**
     * Runs {@code each} on every local rank and collects the answers, each at the index of its
     * rank; ranks of other processes have none.
     */
    public <T> List<T> ask(Question<T> each) {
        List<T> answers = new ArrayList<>(Collections.nCopies(size(), null));
        run(
                rank -> {
                    T answer = each.ask(rank);
                    synchronized (answers) {
                        answers.set(rank, answer);
                    }
                });
        return answers;
    }

    /** The time that the slowest rank spent in its work in the latest round. */
    public long slowestNanos() {
        return slowestNanos;
    }

    private void serve(int rank) {
        long seen = 0;
        while (true) {
            Work mine;
            synchronized (starting) {
                while (round == seen && !closed) {
                    waitOn(starting);
                }
                if (closed) {
                    return;
                }
                seen = round;
                mine = work;
            }
            perform(rank, mine);
        }
    }

    private void perform(int rank, Work mine) {
        Throwable thrown = null;
        long start = System.nanoTime();
        try {
            mine.run(rank);
        } catch (Throwable any) {
            thrown = any;
        }
        long spent = System.nanoTime() - start;
        synchronized (finishing) {
            nanos[rank] = spent;
            if (thrown != null) {
                note(new RankFailure(rank, thrown));
            }
            running--;
            if (running == 0) {
                finishing.notifyAll();
            }
        }
    }

    private void note(RankFailure next) {
        if (failure == null) {
            failure = next;
        } else {
            failure.addSuppressed(next);
        }
    }

    @SuppressWarnings("WaitNotInLoop") // both callers loop
    private static void waitOn(Object monitor) {
        try {
            monitor.wait();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while ranks were at work", interrupted);
        }
    }

    /** Ends the threads; no round may be in progress. */
    @Override
    public void close() {
        synchronized (starting) {
            closed = true;
            starting.notifyAll();
        }
    }
}
