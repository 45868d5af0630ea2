package io.deepep.bench.chaos;

import java.util.List;

/** What befalls the victim. */
public enum Action {
    /** Its process is killed. */
    KILL(Model.PROCESSES),
    /** Its code throws between two calls. */
    THROW(Model.THREADS, Model.PROCESSES),
    /** It closes its buffer and its communicator while the others go on. */
    LEAVE(Model.THREADS, Model.PROCESSES),
    /** Its process is stopped for less than the time-out. */
    PAUSE(Model.PROCESSES),
    /** Its process is stopped for longer than the time-out. */
    FREEZE(Model.PROCESSES),
    /** It begins each call late, by less than the time-out. */
    SLOW(Model.THREADS, Model.PROCESSES),
    /** Its process can open no more files for the rest of the trial. */
    STARVE(Model.PROCESSES);

    private final boolean fitsThreads;

    Action(Model... models) {
        this.fitsThreads = List.of(models).contains(Model.THREADS);
    }

    /** Whether it can be done to a rank of this kind. */
    boolean fits(Model model) {
        return model == Model.PROCESSES || fitsThreads;
    }

    /** Whether all ranks must end as if nothing had happened. */
    boolean isHarmless() {
        return this == PAUSE || this == SLOW;
    }
}
