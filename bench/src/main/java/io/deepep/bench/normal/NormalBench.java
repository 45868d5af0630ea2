package io.deepep.bench.normal;

import static io.deepep.DType.BF16;
import static io.deepep.DType.FP8_E4M3;

import io.deepep.bench.measure.BenchOptions;
import io.deepep.bench.measure.BenchReport;
import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.measure.RoutingCounts;
import io.deepep.bench.run.Case;
import io.deepep.bench.run.CaseRunner;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.RankSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;

/** {@code bench normal}: verifies the operations, then measures them. */
public final class NormalBench {
    private NormalBench() {}

    /**
     * Runs and reports; returns whether everything was right. Nothing is measured that gave a wrong
     * result.
     *
     * @param ranks where they run
     */
    public static boolean run(
            Console console, Job job, BenchOptions options, IntFunction<RankSource> ranks) {
        try (NormalSetup setup = NormalSetup.open(job, Map.of(), ranks)) {
            console.line("normal mode, %s", setup.session().describe());
            CaseRunner runner = new CaseRunner(console, setup.session());
            runner.run(cases(setup));
            if (runner.failed() == 0) {
                List<OperationRecord> records = measure(console, setup, options);
                BenchReport.print(console, records);
                if (options.json() != null && setup.session().writesResults()) {
                    BenchReport.write(options.json(), RoutingCounts.addTo(records, job.routing()));
                }
            }
            runner.summarise();
            return runner.failed() == 0;
        }
    }

    static List<Case> cases(NormalSetup setup) {
        List<NormalVariant> variants =
                new ArrayList<>(
                        List.of(
                                NormalVariant.of(BF16, NormalFeature.TOPK),
                                NormalVariant.of(BF16, NormalFeature.TOPK, NormalFeature.CACHED),
                                NormalVariant.of(
                                        BF16, NormalFeature.TOPK, NormalFeature.COMBINE_BUFFER)));
        if (setup.session().job().allowsFp8()) {
            variants.add(NormalVariant.of(FP8_E4M3, NormalFeature.TOPK));
        }
        List<Case> cases = new ArrayList<>();
        variants.forEach(variant -> cases.add(NormalTest.of(setup, setup.workload(), variant)));
        return cases;
    }

    private static List<OperationRecord> measure(
            Console console, NormalSetup setup, BenchOptions options) {
        NormalOperations operations = new NormalOperations(setup);
        List<IntFunction<NormalOperation>> measured = new ArrayList<>();
        if (setup.session().job().allowsFp8()) {
            measured.add(sms -> operations.dispatch(FP8_E4M3, sms));
            measured.add(sms -> operations.cachedDispatch(FP8_E4M3, sms));
        }
        measured.add(sms -> operations.dispatch(BF16, sms));
        measured.add(sms -> operations.cachedDispatch(BF16, sms));
        measured.add(sms -> operations.combine(CombineSource.ELSEWHERE, sms));
        if (setup.session().job().placement().isCuda()) {
            measured.add(sms -> operations.combine(CombineSource.PLAIN_MEMORY, sms));
        }
        measured.add(sms -> operations.combine(CombineSource.BUFFER, sms));
        List<OperationRecord> records = new ArrayList<>();
        try (NormalMeter meter = NormalMeter.open(console, setup)) {
            for (IntFunction<NormalOperation> bySms : measured) {
                records.addAll(meter.measure(bySms, options.warmups(), options.repeats()));
            }
        }
        return records;
    }
}
