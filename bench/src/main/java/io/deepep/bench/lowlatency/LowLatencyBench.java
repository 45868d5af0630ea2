package io.deepep.bench.lowlatency;

import static io.deepep.bench.lowlatency.LowLatencyFeature.ZERO_COPY;

import io.deepep.LowLatencyFormat;
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
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.function.IntFunction;

/** {@code bench low-latency}: verifies the operations, then measures them. */
public final class LowLatencyBench {
    private static final List<Integer> CUDA_SMS = List.of(16, 32, 64, 132);

    private LowLatencyBench() {}

    /**
     * Runs and reports; returns whether everything was right. Nothing is measured that gave a wrong
     * result.
     *
     * @param tokens numbers of tokens per rank to measure with, at most the job's
     * @param ranks where they run
     */
    public static boolean run(
            Console console,
            Job job,
            List<Integer> tokens,
            OperationOptions options,
            IntFunction<RankSource> ranks) {
        options.require(LowLatencyOperations.NAMES);
        try (LowLatencySetup setup = LowLatencySetup.open(job, ranks)) {
            console.line("low-latency mode, %s", setup.session().describe());
            return CaseRunner.verify(
                    console,
                    setup.session(),
                    cases(setup),
                    () ->
                            BenchReport.publish(
                                    console,
                                    setup.session(),
                                    measure(console, setup, tokens, options),
                                    options));
        }
    }

    static List<Case> cases(LowLatencySetup setup) {
        List<Case> cases = new ArrayList<>();
        for (LowLatencyFormat format : LowLatencyFormat.values()) {
            cases.add(of(setup, LowLatencyVariant.of(format)));
        }
        cases.add(of(setup, LowLatencyVariant.of(LowLatencyFormat.BF16, ZERO_COPY)));
        for (CombineRows home : EnumSet.complementOf(EnumSet.of(CombineRows.BF16))) {
            cases.add(of(setup, LowLatencyVariant.of(LowLatencyFormat.BF16).home(home)));
        }
        return cases;
    }

    /** A case of the job's own routing. */
    static Case of(LowLatencySetup setup, LowLatencyVariant variant) {
        return new LowLatencyCase(setup.session(), setup.workload(), variant);
    }

    /**
     * Numbers of multiprocessors to measure with: the given ones; else on GPUs up to all, because a
     * decode step has nothing else to do meanwhile.
     */
    static List<Integer> measuredSms(Job job) {
        if (!job.sms().isEmpty() || !job.placement().isCuda()) {
            return job.measuredSms();
        }
        int room = job.placement().smsPerRank(job.numRanks());
        List<Integer> fitting = CUDA_SMS.stream().filter(number -> number <= room).toList();
        return fitting.isEmpty() ? List.of(room) : fitting;
    }

    private static List<OperationRecord> measure(
            Console console,
            LowLatencySetup opened,
            List<Integer> tokens,
            OperationOptions options) {
        List<OperationRecord> records = new ArrayList<>();
        try (Meter meter = meter(console, opened)) {
            for (int number : tokens) {
                LowLatencySetup setup = opened.withNumTokens(number);
                Job job = setup.job();
                records.addAll(options.measure(meter, job, measured(setup), measuredSms(job)));
            }
        }
        return records;
    }

    /** The meter of the setup's backend, after its yardstick was measured. */
    private static Meter meter(Console console, LowLatencySetup setup) {
        if (!setup.job().placement().isCuda()) {
            return Meter.onHost(setup.session());
        }
        LowLatencyBytes bytes = new LowLatencyBytes(setup.job());
        Set<Long> rows =
                Set.of(
                        bytes.dispatchWireRowBytes(LowLatencyFormat.FP8),
                        bytes.combineRowBytes(CombineRows.BF16));
        List<Integer> sms = measuredSms(setup.job());
        return CudaMeter.open(console, setup.session(), rows, sms).withEmptyKernels(sms);
    }

    private static List<IntFunction<MeasuredCall>> measured(LowLatencySetup setup) {
        LowLatencyOperations operations = new LowLatencyOperations(setup);
        List<IntFunction<MeasuredCall>> measured = new ArrayList<>();
        for (LowLatencyFormat format : LowLatencyFormat.values()) {
            measured.add(sms -> operations.dispatch(format, sms));
        }
        if (!setup.job().placement().isCuda()) {
            // Kernels send rows from wherever they lie.
            measured.add(sms -> operations.combine(false, CombineRows.BF16, sms));
        }
        for (CombineRows home : CombineRows.values()) {
            measured.add(sms -> operations.combine(true, home, sms));
        }
        return measured;
    }
}
