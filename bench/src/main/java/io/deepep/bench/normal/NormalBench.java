package io.deepep.bench.normal;

import static io.deepep.DType.BF16;
import static io.deepep.DType.FP8_E4M3;
import static io.deepep.bench.normal.CombineSource.BUFFER;
import static io.deepep.bench.normal.CombineSource.ELSEWHERE;
import static io.deepep.bench.normal.CombineSource.PLAIN_MEMORY;
import static io.deepep.bench.normal.NormalFeature.CACHED;
import static io.deepep.bench.normal.NormalFeature.COMBINE_BUFFER;
import static io.deepep.bench.normal.NormalFeature.FP8_HOME;
import static io.deepep.bench.normal.NormalFeature.TOPK;

import io.deepep.CombineFormat;
import io.deepep.bench.cuda.CudaMeter;
import io.deepep.bench.measure.BenchReport;
import io.deepep.bench.measure.MeasuredCall;
import io.deepep.bench.measure.Meter;
import io.deepep.bench.measure.OperationOptions;
import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.run.Case;
import io.deepep.bench.run.CaseRunner;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.RankSource;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.IntFunction;

/** {@code bench normal}: verifies the operations, then measures them. */
public final class NormalBench {
    private NormalBench() {}

    /**
     * Runs and reports; returns whether everything was right. Nothing is measured that gave a wrong
     * result.
     *
     * @param profile the file for what was found out about the machine, or null
     * @param ranks where they run
     */
    public static boolean run(
            Console console,
            Job job,
            OperationOptions options,
            Path profile,
            IntFunction<RankSource> ranks) {
        ProfileOutput output = new ProfileOutput(profile);
        output.require(job, options);
        options.require(NormalOperations.NAMES);
        try (NormalSetup setup = NormalSetup.open(job, Map.of(), ranks)) {
            output.require(setup.session());
            console.line("normal mode, %s", setup.session().describe());
            return CaseRunner.verify(
                    console,
                    setup.session(),
                    cases(setup),
                    () -> {
                        List<OperationRecord> records = measure(console, setup, options);
                        BenchReport.publish(console, setup.session(), records, options);
                        output.write(console, setup.session(), records);
                    });
        }
    }

    static List<Case> cases(NormalSetup setup) {
        List<NormalVariant> variants =
                new ArrayList<>(
                        List.of(
                                NormalVariant.of(BF16, TOPK),
                                NormalVariant.of(BF16, TOPK, CACHED),
                                NormalVariant.of(BF16, TOPK, COMBINE_BUFFER)));
        if (setup.session().job().allowsFp8()) {
            variants.add(NormalVariant.of(FP8_E4M3, TOPK));
            variants.add(NormalVariant.of(BF16, TOPK, FP8_HOME));
            variants.add(NormalVariant.of(BF16, TOPK, COMBINE_BUFFER, FP8_HOME));
        }
        List<Case> cases = new ArrayList<>();
        variants.forEach(variant -> cases.add(new NormalCase(setup, setup.workload(), variant)));
        return cases;
    }

    private static List<OperationRecord> measure(
            Console console, NormalSetup setup, OperationOptions options) {
        NormalOperations operations = new NormalOperations(setup);
        List<IntFunction<MeasuredCall>> measured = new ArrayList<>();
        if (setup.session().job().allowsFp8()) {
            measured.add(sms -> operations.dispatch(FP8_E4M3, sms));
            measured.add(sms -> operations.cachedDispatch(FP8_E4M3, sms));
        }
        measured.add(sms -> operations.dispatch(BF16, sms));
        measured.add(sms -> operations.cachedDispatch(BF16, sms));
        measured.add(sms -> operations.combine(ELSEWHERE, CombineFormat.BF16, sms));
        if (setup.session().job().placement().isCuda()) {
            measured.add(sms -> operations.combine(PLAIN_MEMORY, CombineFormat.BF16, sms));
        }
        measured.add(sms -> operations.combine(BUFFER, CombineFormat.BF16, sms));
        if (setup.session().job().allowsFp8()) {
            measured.add(sms -> operations.combine(ELSEWHERE, CombineFormat.FP8, sms));
            measured.add(sms -> operations.combine(BUFFER, CombineFormat.FP8, sms));
        }
        try (Meter meter = meter(console, setup)) {
            Job job = setup.session().job();
            return options.measure(meter, job, measured, job.measuredSms());
        }
    }

    /** The meter of the setup's backend, after its yardstick was measured. */
    static Meter meter(Console console, NormalSetup setup) {
        Job job = setup.session().job();
        if (!job.placement().isCuda()) {
            return Meter.onHost(setup.session());
        }
        NormalBytes bytes = new NormalBytes(job);
        Set<Long> rows = new TreeSet<>(List.of(bytes.wireRowBytes(BF16)));
        if (job.allowsFp8()) {
            rows.add(bytes.wireRowBytes(FP8_E4M3));
        }
        Set<Integer> sms = new TreeSet<>(job.measuredSms());
        sms.add(job.placement().smsPerRank(job.numRanks()));
        return CudaMeter.open(console, setup.session(), rows, sms);
    }
}
