package io.deepep.bench.run;

import java.util.concurrent.atomic.AtomicReferenceArray;

/** What each rank of this process has for a while: opened, and closed again, on its thread. */
public final class PerRank<T extends AutoCloseable> implements AutoCloseable {
    private final RankTeam team;
    private final AtomicReferenceArray<T> all;

    private PerRank(RankTeam team) {
        this.team = team;
        this.all = new AtomicReferenceArray<>(team.size());
    }

    /**
     * Opens it on every rank; collective. If one fails, what the others opened is closed.
     *
     * @throws RankFailure if any rank failed
     */
    public static <T extends AutoCloseable> PerRank<T> open(
            RankTeam team, RankTeam.Question<T> each) {
        PerRank<T> opened = new PerRank<>(team);
        try {
            team.run(rank -> opened.all.set(rank, each.ask(rank)));
            return opened;
        } catch (RankFailure failed) {
            try {
                opened.close();
            } catch (RankFailure alsoFailed) {
                failed.addSuppressed(alsoFailed);
            }
            throw failed;
        }
    }

    /**
     * {@link #open} of what the user asked for.
     *
     * @throws UsageException if the library refuses it
     */
    public static <T extends AutoCloseable> PerRank<T> openAsked(
            RankTeam team, RankTeam.Question<T> each) {
        try {
            return open(team, each);
        } catch (RankFailure refused) {
            throw refused.asUsage();
        }
    }

    /** What a rank of this process has. */
    public T get(int rank) {
        return all.get(rank);
    }

    /** Closes all; collective, and idempotent. */
    @Override
    public void close() {
        team.run(
                rank -> {
                    T own = all.getAndSet(rank, null);
                    if (own != null) {
                        own.close();
                    }
                });
    }
}
