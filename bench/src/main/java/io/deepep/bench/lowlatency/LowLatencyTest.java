package io.deepep.bench.lowlatency;

import static io.deepep.bench.lowlatency.LowLatencyFeature.HOOK;
import static io.deepep.bench.lowlatency.LowLatencyFeature.OUT;
import static io.deepep.bench.lowlatency.LowLatencyFeature.PRE_REDUCED;
import static io.deepep.bench.lowlatency.LowLatencyFeature.STATS;

import io.deepep.LowLatencyFormat;
import io.deepep.bench.measure.MeasuredCall;
import io.deepep.bench.measure.Samples;
import io.deepep.bench.run.Case;
import io.deepep.bench.run.CaseRunner;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.RankSource;
import io.deepep.bench.text.TextTable;
import io.deepep.testkit.oracle.Traffic;
import io.deepep.testkit.routing.Gate;
import io.deepep.testkit.routing.Routing;
import io.deepep.testkit.routing.RoutingSpec;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

/** {@code test-low-latency}. */
public final class LowLatencyTest {
    private static final int WARMUPS = 2;
    private static final int REPEATS = 5;
    private static final double MASKED_SHARE = 0.3;
    private static final double DUPLICATE_SHARE = 0.2;
    private static final double MEGA = 1e6;

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
        List<Case> cases = new ArrayList<>();
        LowLatencyVariant.matrix()
                .forEach(variant -> cases.add(LowLatencyBench.of(setup, variant)));
        cases.add(
                LowLatencyBench.of(setup, LowLatencyVariant.of(LowLatencyFormat.BF16, STATS, OUT)));
        for (LowLatencyFormat format : LowLatencyFormat.values()) {
            cases.add(LowLatencyBench.of(setup, LowLatencyVariant.of(format, HOOK, PRE_REDUCED)));
        }
        List<Verifier> specials = new ArrayList<>();
        routings(setup.session().job())
                .forEach(
                        (note, routing) -> {
                            Verifier special =
                                    new Verifier(
                                            new LowLatencyWorkload(
                                                    setup.session(), routing, setup.limits()));
                            specials.add(special);
                            cases.add(
                                    new LowLatencyCase(
                                            setup.session(),
                                            special,
                                            LowLatencyVariant.of(LowLatencyFormat.BF16)
                                                    .noted(note)));
                        });
        List<Verifier> pair = List.of(setup.verifier(), specials.getFirst());
        cases.add(new ChainedCase(setup.session(), pair, LowLatencyFormat.BF16));
        int numRanks = setup.session().job().numRanks();
        if (numRanks > 1) {
            Routing routing = setup.session().job().routing();
            int absent = numRanks - 1;
            LowLatencyWorkload without =
                    new LowLatencyWorkload(
                            setup.session(), routing, setup.limits(), Set.of(absent));
            cases.add(new MaskedRankCase(setup.session(), new Verifier(without), absent));
            cases.add(
                    LowLatencyBench.of(
                            setup,
                            LowLatencyVariant.of(LowLatencyFormat.BF16).noted("after unmasking")));
        }
        return cases;
    }

    private static Map<String, Routing> routings(Job job) {
        RoutingSpec like = job.variations();
        Map<String, Routing> routings = new LinkedHashMap<>();
        routings.put("token counts differ", like.withVaryingTokens(true).generate());
        routings.put("idle ranks", like.withIdleRanks((job.numRanks() + 1) / 2).generate());
        routings.put("masked", like.withMaskedShare(MASKED_SHARE).generate());
        routings.put("experts named twice", like.withDuplicateShare(DUPLICATE_SHARE).generate());
        routings.put("zipf", like.withGate(new Gate.Zipf(1.0)).generate());
        routings.put("all to one expert", like.withGate(new Gate.AllToOne(0)).generate());
        return routings;
    }

    private static void reportSpeed(Console console, LowLatencySetup setup) {
        LowLatencyOperations operations = new LowLatencyOperations(setup);
        int sms = setup.job().dispatchConfig().numSms();
        line(console, setup, "dispatch (FP8) ", operations.dispatch(LowLatencyFormat.FP8, sms));
        line(console, setup, "dispatch (BF16)", operations.dispatch(LowLatencyFormat.BF16, sms));
        line(console, setup, "combine (BF16) ", operations.combine(true, CombineRows.BF16, sms));
    }

    private static void line(
            Console console, LowLatencySetup setup, String name, MeasuredCall call) {
        Samples samples =
                Samples.measure(setup.session().team(), WARMUPS, REPEATS, call.synchronous());
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
        long row = bytes.rowBytes(LowLatencyFormat.BF16);
        IntFunction<Traffic> back = rank -> bytes.combineTraffic(rank, CombineRows.BF16);
        console.print(
                new TextTable<Integer>()
                        .right("rank", Object::toString)
                        .number("tokens", "%.0f", rank -> job.routing().numTokens(rank))
                        .number(
                                "NVLink MB sent",
                                "%.2f",
                                rank -> bytes.dispatchTraffic(rank).nvlinkRows() * row / MEGA)
                        .number(
                                "RDMA MB sent",
                                "%.2f",
                                rank -> bytes.dispatchTraffic(rank).rdmaRows() * row / MEGA)
                        .number(
                                "NVLink MB back",
                                "%.2f",
                                rank -> back.apply(rank).nvlinkRows() * row / MEGA)
                        .number(
                                "RDMA MB back",
                                "%.2f",
                                rank -> back.apply(rank).rdmaRows() * row / MEGA)
                        .of(IntStream.range(0, job.numRanks()).boxed().toList()));
    }
}
