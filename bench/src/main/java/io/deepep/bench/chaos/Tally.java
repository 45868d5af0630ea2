package io.deepep.bench.chaos;

import com.fasterxml.jackson.annotation.JsonProperty;
import io.deepep.bench.text.Names;

/** What became of the trials of one kind. */
public final class Tally {
    private final Mode mode;
    private final Model model;
    private final Action action;

    /** Trials made. */
    @JsonProperty private int tried;

    /** Ranks beside the victims. */
    @JsonProperty private int others;

    /** Of them, those that were told of the victim by its number. */
    @JsonProperty private int named;

    /** Of them, those that got all their results, all right. */
    @JsonProperty private int unharmed;

    /** Trials after which the same processes made verified rounds again. */
    @JsonProperty private int verified;

    /** Trials whose dead was replaced by a new process, with verified rounds after it. */
    @JsonProperty private int replaced;

    /** Trials in which something was not as promised. */
    @JsonProperty private int broken;

    Tally(Trial trial) {
        mode = trial.mode();
        model = trial.model();
        action = trial.action();
    }

    @JsonProperty
    String mode() {
        return Names.of(mode);
    }

    @JsonProperty
    String ranks() {
        return Names.of(model);
    }

    @JsonProperty
    String action() {
        return Names.of(action);
    }

    int tried() {
        return tried;
    }

    int others() {
        return others;
    }

    int named() {
        return named;
    }

    int unharmed() {
        return unharmed;
    }

    int verified() {
        return verified;
    }

    int replaced() {
        return replaced;
    }

    int broken() {
        return broken;
    }

    void count(Outcome other) {
        others++;
        if (other.kind() == Outcome.Kind.NAMED) {
            named++;
        } else if (other.kind() == Outcome.Kind.PASSED) {
            unharmed++;
        }
    }

    void end(boolean verifiedAfter, boolean replacedAfter, boolean brokenPromise) {
        tried++;
        verified += verifiedAfter ? 1 : 0;
        replaced += replacedAfter ? 1 : 0;
        broken += brokenPromise ? 1 : 0;
    }
}
