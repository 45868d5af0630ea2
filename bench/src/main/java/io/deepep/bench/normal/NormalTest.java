package io.deepep.bench.normal;

import io.deepep.DType;
import io.deepep.bench.run.Case;
import io.deepep.bench.run.CaseRunner;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.RankSource;
import io.deepep.bench.text.TextTable;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

/** {@code test-intranode} and {@code test-internode}. */
public final class NormalTest {
    private static final double MEGA = 1e6;

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
        NormalCases.matrix(fp8).forEach(variant -> cases.add(of(setup, setup.workload(), variant)));
        NormalCases.others(fp8).forEach(variant -> cases.add(of(setup, setup.workload(), variant)));
        setup.others()
                .forEach(
                        (note, workload) ->
                                cases.add(of(setup, workload, NormalCases.ofRouting(note))));
        return cases;
    }

    static NormalCase of(NormalSetup setup, NormalWorkload workload, NormalVariant variant) {
        return new NormalCase(setup.session(), workload, setup.pool(), variant, setup.worstRows());
    }

    /**
     * What each rank's tokens send over each kind of link in one BF16 dispatch, as the oracle
     * counts.
     */
    private static void printBytes(Console console, NormalBytes bytes, Job job) {
        long row = bytes.rowBytes(DType.BF16);
        console.print(
                new TextTable<Integer>()
                        .right("rank", Object::toString)
                        .number("tokens", "%.0f", rank -> job.routing().numTokens(rank))
                        .number("rows received", "%.0f", bytes::received)
                        .number(
                                "NVLink MB sent",
                                "%.2f",
                                rank -> bytes.traffic(rank).nvlinkRows() * row / MEGA)
                        .number(
                                "RDMA MB sent",
                                "%.2f",
                                rank -> bytes.traffic(rank).rdmaRows() * row / MEGA)
                        .of(IntStream.range(0, job.numRanks()).boxed().toList()));
    }
}
