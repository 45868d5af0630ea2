package io.deepep.bench.lowlatency;

import static io.deepep.LowLatencyFormat.BF16;
import static io.deepep.bench.lowlatency.LowLatencyFeature.HOOK;
import static io.deepep.bench.lowlatency.LowLatencyFeature.OUT;
import static io.deepep.bench.lowlatency.LowLatencyFeature.STATS;

import io.deepep.LowLatencyFormat;
import io.deepep.bench.measure.MeasuredCall;
import io.deepep.bench.measure.Samples;
import io.deepep.bench.measure.TrafficTable;
import io.deepep.bench.run.Case;
import io.deepep.bench.run.CaseRunner;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.RankSource;
import io.deepep.bench.run.Session;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.IntFunction;

/** {@code test-low-latency}. */
public final class LowLatencyTest {
    private static final int WARMUPS = 2;
    private static final int REPEATS = 5;

    private LowLatencyTest() {}

    /**
     * Runs all cases and the report; returns whether all passed.
     *
     * @param ranks makes as many ranks as it is asked for
     */
    public static boolean run(Console console, Job job, IntFunction<RankSource> ranks) {
        try (LowLatencySetup setup = LowLatencySetup.open(job, ranks)) {
            console.line("low-latency mode, %s", setup.session().describe());
            printBytes(console, new LowLatencyBytes(job), job);
            return CaseRunner.verify(
                    console, setup.session(), cases(setup), () -> reportSpeed(console, setup));
        }
    }

    private static List<Case> cases(LowLatencySetup setup) {
        Session session = setup.session();
        Job job = setup.job();
        List<Case> cases = new ArrayList<>();
        LowLatencyVariant.matrix()
                .forEach(variant -> cases.add(LowLatencyBench.of(setup, variant)));
        cases.add(LowLatencyBench.of(setup, LowLatencyVariant.of(BF16, STATS, OUT)));
        for (LowLatencyFormat format : LowLatencyFormat.values()) {
            cases.add(
                    LowLatencyBench.of(
                            setup,
                            LowLatencyVariant.of(format, HOOK).home(CombineRows.PRE_REDUCED)));
        }
        List<LowLatencyWorkload> workloads = new ArrayList<>(List.of(setup.workload()));
        job.hardRoutings(0)
                .forEach(
                        (note, routing) -> {
                            LowLatencyWorkload special = setup.workload(routing, Set.of());
                            workloads.add(special);
                            cases.add(
                                    new LowLatencyCase(
                                            session,
                                            special,
                                            LowLatencyVariant.of(BF16).noted(note)));
                        });
        cases.add(new ChainedCase(session, workloads.subList(0, 2)));
        if (job.numRanks() > 1) {
            int absent = job.numRanks() - 1;
            LowLatencyWorkload without = setup.workload(job.routing(), Set.of(absent));
            cases.add(new MaskedRankCase(session, without, absent));
            cases.add(
                    LowLatencyBench.of(setup, LowLatencyVariant.of(BF16).noted("after unmasking")));
        }
        return cases;
    }

    private static void reportSpeed(Console console, LowLatencySetup setup) {
        LowLatencyOperations operations = new LowLatencyOperations(setup);
        int sms = setup.job().numSms();
        line(console, setup, "dispatch (FP8) ", operations.dispatch(LowLatencyFormat.FP8, sms));
        line(console, setup, "dispatch (BF16)", operations.dispatch(BF16, sms));
        line(console, setup, "combine (BF16) ", operations.combine(true, CombineRows.BF16, sms));
    }

    private static void line(
            Console console, LowLatencySetup setup, String name, MeasuredCall call) {
        Samples samples =
                Samples.measure(
                        setup.session().team(), WARMUPS, REPEATS, call.operation().synchronous());
        double perRank =
                samples.bytesPerSecond(call.total().logical()) / setup.session().job().numRanks();
        console.line(
                "%s: %.2f GB/s (selections), %.0f us, per rank, median of %d",
                name, perRank / 1e9, samples.percentileMicros(50), REPEATS);
    }

    /**
     * What each rank sends over each kind of link in a BF16 dispatch, and gets back in a combine.
     */
    private static void printBytes(Console console, LowLatencyBytes bytes, Job job) {
        console.print(
                new TrafficTable(job, bytes.rowBytes(BF16))
                        .links("sent", bytes::dispatchTraffic)
                        .links("back", rank -> bytes.combineTraffic(rank, CombineRows.BF16))
                        .text());
    }
}
