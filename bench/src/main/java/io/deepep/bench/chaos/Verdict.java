package io.deepep.bench.chaos;

import java.util.ArrayList;
import java.util.List;

/** Holds the outcomes of a trial against what is promised. */
final class Verdict {
    private Verdict() {}

    /**
     * What is not as promised, a line each; empty if all is.
     *
     * @param outcomes of all ranks
     */
    static List<String> breaches(Trial trial, List<Outcome> outcomes) {
        List<String> breaches = new ArrayList<>();
        for (int rank = 0; rank < outcomes.size(); rank++) {
            Outcome outcome = outcomes.get(rank);
            boolean kept =
                    rank == trial.victim()
                            ? isVictimsDue(trial, outcome)
                            : isOthersDue(trial, outcome);
            if (!kept) {
                breaches.add("rank " + rank + " " + outcome);
            }
        }
        return breaches;
    }

    /** A rank that is not disturbed gets right results, or the victim's number. */
    private static boolean isOthersDue(Trial trial, Outcome outcome) {
        return switch (outcome.kind()) {
            case PASSED -> true;
            case NAMED -> !trial.action().isHarmless() && outcome.peer() == trial.victim();
            case FAILED, WRONG, HUNG, DEAD -> false;
        };
    }

    /** A victim may see any error where its action is not harmless, but no wrong result. */
    private static boolean isVictimsDue(Trial trial, Outcome outcome) {
        return switch (outcome.kind()) {
            case PASSED -> true;
            case NAMED, FAILED -> !trial.action().isHarmless();
            case DEAD -> trial.action() == Action.KILL;
            case WRONG, HUNG -> false;
        };
    }
}
