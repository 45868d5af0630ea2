package io.deepep.bench.normal;

import io.deepep.DType;
import io.deepep.bench.measure.TrafficTable;
import io.deepep.bench.run.Case;
import io.deepep.bench.run.CaseRunner;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.RankSource;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntFunction;
import java.util.stream.Stream;

/** {@code test-intranode} and {@code test-internode}. */
public final class NormalTest {

    private NormalTest() {}

    /**
     * Runs all cases and the report; returns whether all passed.
     *
     * @param ranks makes as many ranks as it is asked for
     */
    public static boolean run(Console console, Job job, IntFunction<RankSource> ranks) {
        try (NormalSetup setup = NormalSetup.open(job, NormalCases.routings(job), ranks)) {
            console.line("normal mode, %s", setup.session().describe());
            if (!job.allowsFp8()) {
                console.line("hidden %d is not a multiple of 128: without FP8", job.hidden());
            }
            console.line("buffers opened in %.2f s", setup.session().openSeconds());
            printBytes(console, new NormalBytes(job), job);
            return CaseRunner.verify(
                    console,
                    setup.session(),
                    cases(setup),
                    () -> NormalSpeed.report(console, setup));
        }
    }

    private static List<Case> cases(NormalSetup setup) {
        boolean fp8 = setup.session().job().allowsFp8();
        List<Case> cases = new ArrayList<>();
        cases.add(new LayoutCase(setup.session(), setup.workload()));
        Stream.of(NormalCases.matrix(fp8), NormalCases.others(fp8))
                .flatMap(List::stream)
                .map(variant -> new NormalCase(setup, setup.workload(), variant))
                .forEach(cases::add);
        setup.others()
                .forEach(
                        (note, workload) ->
                                cases.add(
                                        new NormalCase(
                                                setup, workload, NormalCases.ofRouting(note))));
        return cases;
    }

    /**
     * What each rank's tokens send over each kind of link in one BF16 dispatch, as the oracle
     * counts.
     */
    private static void printBytes(Console console, NormalBytes bytes, Job job) {
        console.print(
                new TrafficTable(job, bytes.rowBytes(DType.BF16))
                        .rows("rows received", bytes::received)
                        .links("sent", bytes::traffic)
                        .text());
    }
}
