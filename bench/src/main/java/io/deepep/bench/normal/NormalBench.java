package io.deepep.bench.normal;

import static io.deepep.DType.BF16;
import static io.deepep.DType.FP8_E4M3;

import io.deepep.DType;
import io.deepep.bench.measure.BenchOptions;
import io.deepep.bench.measure.BenchReport;
import io.deepep.bench.measure.Build;
import io.deepep.bench.measure.MemoryCopy;
import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.measure.Samples;
import io.deepep.bench.run.Case;
import io.deepep.bench.run.CaseRunner;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.RankTeam;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** {@code bench normal}: verifies the operations, then measures them. */
public final class NormalBench {
    private NormalBench() {}

    /**
     * Runs and reports; returns whether everything was right. Nothing is measured that gave a wrong
     * result.
     */
    public static boolean run(Console console, Job job, BenchOptions options) {
        try (NormalSetup setup = NormalSetup.open(job, Map.of())) {
            console.line("normal mode, %s backend, %s", setup.session().backend(), job.describe());
            CaseRunner runner = new CaseRunner(console, setup.session());
            runner.run(cases(setup));
            if (runner.failed() == 0) {
                List<OperationRecord> records = measure(setup, options);
                BenchReport.print(console, records);
                if (options.json() != null) {
                    BenchReport.write(options.json(), records);
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
                                NormalVariant.of(BF16, Feature.TOPK),
                                NormalVariant.of(BF16, Feature.TOPK, Feature.CACHED),
                                NormalVariant.of(BF16, Feature.TOPK, Feature.COMBINE_BUFFER)));
        if (setup.session().job().allowsFp8()) {
            variants.add(NormalVariant.of(FP8_E4M3, Feature.TOPK));
        }
        List<Case> cases = new ArrayList<>();
        variants.forEach(variant -> cases.add(NormalTest.of(setup, setup.workload(), variant)));
        return cases;
    }

    private static List<OperationRecord> measure(NormalSetup setup, BenchOptions options) {
        Job job = setup.session().job();
        NormalOperations operations = new NormalOperations(setup);
        NormalBytes bytes = new NormalBytes(job, setup.workload());
        OperationRecord.Context context =
                new OperationRecord.Context(
                        setup.session().backend().name().toLowerCase(Locale.ROOT),
                        job,
                        MemoryCopy.bytesPerSecond(),
                        Build.current());
        List<OperationRecord> records = new ArrayList<>();
        Recorder recorder =
                (op, dtype, sms, work) ->
                        records.add(
                                context.of(
                                        op,
                                        dtype.name().toLowerCase(Locale.ROOT),
                                        sms,
                                        Samples.measure(
                                                setup.session().team(),
                                                options.warmups(),
                                                options.repeats(),
                                                work),
                                        bytes.total(dtype)));
        int dispatchSms = job.dispatchConfig().numSms();
        if (job.allowsFp8()) {
            recorder.record("dispatch", FP8_E4M3, dispatchSms, operations.dispatch(FP8_E4M3));
        }
        recorder.record("dispatch", BF16, dispatchSms, operations.dispatch(BF16));
        recorder.record("dispatch-cached", BF16, dispatchSms, operations.cachedDispatch());
        int combineSms = job.combineConfig().numSms();
        recorder.record("combine-staged", BF16, combineSms, operations.combine(false));
        recorder.record("combine-zero-copy", BF16, combineSms, operations.combine(true));
        return records;
    }

    private interface Recorder {
        void record(String op, DType dtype, int sms, RankTeam.Work work);
    }
}
