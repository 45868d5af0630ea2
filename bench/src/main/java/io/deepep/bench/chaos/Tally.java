package io.deepep.bench.chaos;

import com.fasterxml.jackson.annotation.JsonAutoDetect;
import io.deepep.bench.text.Names;

/** What became of the trials of one kind. */
@JsonAutoDetect(fieldVisibility = JsonAutoDetect.Visibility.ANY)
public final class Tally {
    final String mode;
    final String ranks;
    final String action;

    /** Trials made. */
    int tried;

    /** Ranks beside the victims. */
    int others;

    /** Of them, those that were told of the victim by its number. */
    int named;

    /** Of them, those that got all their results, all right. */
    int unharmed;

    /** Trials after which the same processes made verified rounds again. */
    int verified;

    /** Trials whose dead was replaced by a new process, with verified rounds after it. */
    int replaced;

    /** Trials in which something was not as promised. */
    int broken;

    Tally(Trial trial) {
        mode = Names.of(trial.mode());
        ranks = Names.of(trial.model());
        action = Names.of(trial.action());
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
