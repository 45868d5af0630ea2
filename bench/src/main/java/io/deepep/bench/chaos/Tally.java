package io.deepep.bench.chaos;

import com.fasterxml.jackson.annotation.JsonAutoDetect;
import io.deepep.bench.text.Names;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What became of the trials of one kind. */
@JsonAutoDetect(fieldVisibility = JsonAutoDetect.Visibility.ANY)
public final class Tally {
    /** In the text of a {@link io.deepep.error.DeepEpTimeoutException}. */
    private static final Pattern WAIT =
            Pattern.compile("waited (?:.* m?s )?for rank \\d+ in ([^,:;]+)");

    final String mode;
    final String ranks;
    final String action;

    /** Trials made. */
    int tried;

    /** Ranks beside the victims. */
    int others;

    /** Of them, those that were told of the victim by its number. */
    int named;

    /** What these waited for, and how many did. */
    final Map<String, Integer> waitedIn = new TreeMap<>();

    /** Of them, those that got all their results, all right. */
    int unharmed;

    /** Trials after which the same processes made verified rounds again. */
    int verified;

    /** Trials whose dead was replaced by a new process, with verified rounds after it. */
    int replaced;

    /** Trials whose dead was replaced while the others kept their buffers, with verified rounds. */
    int replacedInPlace;

    /** Trials in which something was not as promised. */
    int broken;

    Tally(Trial trial) {
        mode = Names.of(trial.mode());
        ranks = Names.of(trial.model());
        action = Names.of(trial.action());
    }

    /** Tells kinds from each other, and sorts them. */
    static String name(Trial trial) {
        return Names.of(trial.model()) + Names.of(trial.action()) + Names.of(trial.mode());
    }

    void count(Outcome other) {
        others++;
        if (other.kind() == Outcome.Kind.NAMED) {
            named++;
            Matcher wait = WAIT.matcher(other.text());
            if (wait.find()) {
                waitedIn.merge(wait.group(1), 1, Integer::sum);
            }
        } else if (other.kind() == Outcome.Kind.PASSED) {
            unharmed++;
        }
    }

    void end(boolean verifiedAfter, boolean replacedAfter, boolean inPlace, boolean brokenPromise) {
        tried++;
        verified += verifiedAfter ? 1 : 0;
        replaced += replacedAfter ? 1 : 0;
        replacedInPlace += inPlace ? 1 : 0;
        broken += brokenPromise ? 1 : 0;
    }
}
