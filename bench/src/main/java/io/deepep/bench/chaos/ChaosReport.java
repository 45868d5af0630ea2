package io.deepep.bench.chaos;

import io.deepep.bench.text.Names;
import io.deepep.bench.text.TextTable;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * How trials went.
 *
 * @param made trials, of those that were asked for
 * @param inOrder how many of them were made before the first that was not: groups overtake each
 *     other
 * @param tallies a count for each kind
 * @param leftOver what ranks held more at the end than after their first runs, the most of any
 * @param breaches what was not as promised, a line each with the options that repeat the trial
 * @param failure why ranks could make no more trials; null if they could
 */
public record ChaosReport(
        int made,
        int inOrder,
        List<Tally> tallies,
        Map<RankKind, Usage> leftOver,
        List<String> breaches,
        String failure) {
    /** Whether all promises were kept, and nothing kept ranks from going on. */
    public boolean isGood() {
        return breaches.isEmpty() && failure == null;
    }

    /** For people. */
    public String text() {
        StringBuilder text = new StringBuilder(table());
        Map<String, Integer> waits = new TreeMap<>();
        tallies.forEach(tally -> tally.waitedIn.forEach((w, n) -> waits.merge(w, n, Integer::sum)));
        waits.forEach(
                (what, ranks) ->
                        text.append("\n" + ranks + " ranks waited for the victim in " + what));
        leftOver.forEach(
                (model, usage) ->
                        text.append(
                                ("\nat the end, each rank of the %s held at most %s more than after its"
                                                + " first run")
                                        .formatted(Names.of(model), usage)));
        return text.toString();
    }

    private String table() {
        return new TextTable<Tally>()
                .text("mode", each -> each.mode)
                .text("ranks are", each -> each.ranks)
                .text("action", each -> each.action)
                .right("tried", each -> each.tried)
                .right("other ranks", each -> each.others)
                .right("named the victim", each -> each.named)
                .right("unharmed", each -> each.unharmed)
                .right("verified after", each -> each.verified)
                .right("replaced", each -> each.replaced)
                .right("in open buffers", each -> each.replacedInPlace)
                .right("broken", each -> each.broken)
                .of(tallies);
    }
}
