package io.deepep.bench.chaos;

/** What befalls the victim. */
public enum Action {
    /** Its process is killed. */
    KILL,
    /** Its code throws between two calls. */
    THROW,
    /** It closes its buffer and its communicator while the others go on. */
    LEAVE,
    /** Its process is stopped for less than the time-out. */
    PAUSE,
    /** Its process is stopped for longer than the time-out. */
    FREEZE,
    /** It begins each call late, by less than the time-out. */
    SLOW,
    /**
     * Its process can open no more files, or enlarge none, for the rest of the trial; or it finds
     * the port taken at which it is to meet the others.
     */
    STARVE;

    /** Whether it can be done to a rank of this kind. */
    boolean fits(RankKind model) {
        return model == RankKind.PROCESSES || this == THROW || this == LEAVE || this == SLOW;
    }

    /** Whether all ranks must end as if nothing had happened. */
    boolean isHarmless() {
        return this == PAUSE || this == SLOW;
    }
}
