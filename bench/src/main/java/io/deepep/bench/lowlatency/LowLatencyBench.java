package io.deepep.bench.lowlatency;

import io.deepep.LowLatencyFormat;
import io.deepep.bench.measure.BenchOptions;
import io.deepep.bench.measure.BenchReport;
import io.deepep.bench.measure.Build;
import io.deepep.bench.measure.MemoryCopy;
import io.deepep.bench.measure.OperationBytes;
import io.deepep.bench.measure.OperationRecord;
import io.deepep.bench.measure.RoutingCounts;
import io.deepep.bench.measure.Samples;
import io.deepep.bench.run.Case;
import io.deepep.bench.run.CaseRunner;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.RankTeam;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** {@code bench low-latency}: verifies the operations, then measures them. */
public final class LowLatencyBench {
    private LowLatencyBench() {}

    /**
     * Runs and reports; returns whether everything was right. Nothing is measured that gave a wrong
     * result.
     */
    public static boolean run(Console console, Job job, BenchOptions options) {
        try (LowLatencySetup setup = LowLatencySetup.open(job)) {
            console.line("low-latency mode, %s, %s", job.placement().describe(), job.describe());
            CaseRunner runner = new CaseRunner(console, setup.session());
            runner.run(cases(setup));
            if (runner.failed() == 0) {
                List<OperationRecord> records = measure(setup, options);
                BenchReport.print(console, records);
                if (options.json() != null) {
                    BenchReport.write(options.json(), RoutingCounts.addTo(records, job.routing()));
                }
            }
            runner.summarise();
            return runner.failed() == 0;
        }
    }

    static List<Case> cases(LowLatencySetup setup) {
        List<Case> cases = new ArrayList<>();
        for (LowLatencyFormat format : LowLatencyFormat.values()) {
            cases.add(of(setup, LowLatencyVariant.of(format)));
        }
        cases.add(of(setup, LowLatencyVariant.of(LowLatencyFormat.BF16, Feature.ZERO_COPY)));
        cases.add(of(setup, LowLatencyVariant.of(LowLatencyFormat.BF16, Feature.LOGFMT)));
        return cases;
    }

    private static Case of(LowLatencySetup setup, LowLatencyVariant variant) {
        return new LowLatencyCase(setup.session(), setup.verifier(), variant);
    }

    private static List<OperationRecord> measure(LowLatencySetup setup, BenchOptions options) {
        Job job = setup.session().job();
        LowLatencyOperations operations = new LowLatencyOperations(setup);
        LowLatencyBytes bytes = new LowLatencyBytes(job);
        OperationRecord.Context context = new OperationRecord.Context(job, Build.current());
        double memoryCopy = MemoryCopy.bytesPerSecond();
        List<OperationRecord> records = new ArrayList<>();
        Recorder recorder =
                (op, dtype, work, moved) ->
                        records.add(
                                context.onHost(
                                        new OperationRecord.Subject(
                                                op, dtype, job.dispatchConfig().numSms()),
                                        Samples.measure(
                                                setup.session().team(),
                                                options.warmups(),
                                                options.repeats(),
                                                work),
                                        moved,
                                        memoryCopy));
        for (LowLatencyFormat format : LowLatencyFormat.values()) {
            String dtype = format.name().toLowerCase(Locale.ROOT);
            recorder.record(
                    "ll-dispatch", dtype, operations.dispatch(format), bytes.dispatch(format));
        }
        recorder.record(
                "ll-combine-staged",
                "bf16",
                operations.combine(false, false),
                bytes.combine(false));
        recorder.record(
                "ll-combine-zero-copy",
                "bf16",
                operations.combine(true, false),
                bytes.combine(false));
        recorder.record(
                "ll-combine-logfmt", "bf16", operations.combine(true, true), bytes.combine(true));
        return records;
    }

    private interface Recorder {
        void record(String op, String dtype, RankTeam.Work work, OperationBytes bytes);
    }
}
