package io.deepep.bench.report;

import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.text.Decimals;
import io.deepep.bench.text.TextTable;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;

/** The first section: who is slow, which expert is hot, how close to the limit. */
final class Glance {
    private Glance() {}

    private record Answer(String question, String answer, String from) {}

    static void add(ReportPage page, List<BenchRun> runs, FlightSummary flight) {
        List<Answer> answers = new ArrayList<>();
        runs.forEach(run -> addLimit(answers, run));
        flight.experts.forEach(
                (mode, tokens) ->
                        addHottest(
                                answers, tokens, flight.absentExperts(mode), mode + " recording"));
        for (BenchRun run : runs) {
            if (run.routed() != null) {
                addHottest(answers, ExpertLoad.tokens(run.routed().routing()), "", run.name());
            }
        }
        addSlowest(answers, flight);
        if (!answers.isEmpty()) {
            page.section("At a glance", "The sections below show where each answer comes from.")
                    .table(
                            "Answers",
                            answers,
                            new TextTable<Answer>()
                                    .text("question", Answer::question)
                                    .text("answer", Answer::answer)
                                    .text("from", Answer::from));
        }
    }

    private static void addLimit(List<Answer> answers, BenchRun run) {
        List<OperationRecord> best = run.fastestWithShare();
        if (!best.isEmpty()) {
            Comparator<OperationRecord> byShare = Comparator.comparingDouble(BenchRun::share);
            String range =
                    share(Collections.min(best, byShare), best)
                            + " to "
                            + share(Collections.max(best, byShare), best);
            answers.add(new Answer("How close to the limit?", range, run.name()));
        }
    }

    private static String share(OperationRecord each, List<OperationRecord> all) {
        return Decimals.of("%.0f %%", 100 * BenchRun.share(each))
                + " (%s)".formatted(OperationNames.of(each, all));
    }

    private static void addHottest(List<Answer> answers, long[] tokens, String note, String from) {
        ExpertLoad.hottest(tokens)
                .ifPresent(
                        who ->
                                answers.add(
                                        new Answer(
                                                "Which expert is hot?",
                                                note.isEmpty() ? who : who + "." + note,
                                                from)));
    }

    private static void addSlowest(List<Answer> answers, FlightSummary flight) {
        Peak.of(flight.caused())
                .map(
                        peak ->
                                Decimals.of(
                                        "rank "
                                                + peak.index()
                                                + ", which caused %.0f %% of all waits",
                                        100 * peak.share()))
                .ifPresent(who -> answers.add(new Answer("Who is slow?", who, "recording")));
    }
}
