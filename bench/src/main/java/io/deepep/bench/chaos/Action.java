package io.deepep.bench.chaos;

import java.util.List;

/** What befalls the victim. */
public enum Action {
    /** Its process is killed. */
    KILL(RankKind.PROCESSES),
    /** Its code throws between two calls. */
    THROW(RankKind.THREADS, RankKind.PROCESSES),
    /** It closes its buffer and its communicator while the others go on. */
    LEAVE(RankKind.THREADS, RankKind.PROCESSES),
    /** Its process is stopped for less than the time-out. */
    PAUSE(RankKind.PROCESSES),
    /** Its process is stopped for longer than the time-out. */
    FREEZE(RankKind.PROCESSES),
    /** It begins each call late, by less than the time-out. */
    SLOW(RankKind.THREADS, RankKind.PROCESSES),
    /**
     * Its process can open no more files, or enlarge none, for the rest of the trial; or it finds
     * the port taken at which it is to meet the others.
     */
    STARVE(RankKind.PROCESSES);

    private final boolean fitsThreads;

    Action(RankKind... models) {
        this.fitsThreads = List.of(models).contains(RankKind.THREADS);
    }

    /** Whether it can be done to a rank of this kind. */
    boolean fits(RankKind model) {
        return model == RankKind.PROCESSES || fitsThreads;
    }

    /** Whether all ranks must end as if nothing had happened. */
    boolean isHarmless() {
        return this == PAUSE || this == SLOW;
    }
}
