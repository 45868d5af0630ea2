package io.deepep.bench.lowlatency;

import io.deepep.bench.cuda.CudaStopwatch;
import io.deepep.bench.cuda.DriverText;
import io.deepep.bench.measure.BenchOptions;
import io.deepep.bench.measure.BenchReport;
import io.deepep.bench.measure.Build;
import io.deepep.bench.measure.ComparedOptions;
import io.deepep.bench.measure.Samples;
import io.deepep.bench.measure.Timing;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.RankSource;
import io.deepep.bench.text.Names;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

/** {@code bench decode}: the layers of a decoding step, enqueued one after the other. */
public final class DecodeBench {
    private DecodeBench() {}

    /**
     * What is repeated.
     *
     * @param rows what travels in a combine
     */
    public record Step(int layers, CombineRows rows) {}

    /**
     * Measures, then verifies the last layer's results; returns true.
     *
     * @param tokens numbers of tokens per rank, at most the job's
     */
    public static boolean run(
            Console console, Job job, List<Integer> tokens, Step step, ComparedOptions options) {
        try (LowLatencySetup setup = LowLatencySetup.open(job, RankSource::inProcess)) {
            console.line("decoding, %s", setup.session().describe());
            console.line(
                    "microseconds per layer (a dispatch in FP8 and a %scombine in %s), %d layers",
                    step.rows().preReduced() ? "pre-reduced " : "",
                    step.rows().format(),
                    step.layers());
            List<DecodeRecord> records = new ArrayList<>();
            for (int number : tokens) {
                for (int sms : LowLatencyBench.measuredSms(job)) {
                    DecodeRecord record = measure(setup.withNumTokens(number), step, sms, options);
                    print(console, record);
                    records.add(record);
                }
            }
            options.compare(console, records.stream().map(DecodeRecord::asFigure).toList());
            if (options.json() != null) {
                BenchReport.write(options.json(), records);
            }
            return true;
        }
    }

    private static DecodeRecord measure(
            LowLatencySetup setup, Step step, int sms, BenchOptions options) {
        DecodeLoop loop = new DecodeLoop(setup, step, sms);
        Job job = setup.job();
        Build build = Build.current();
        boolean cuda = job.placement().isCuda();
        DecodeRecord record =
                new DecodeRecord(
                        cuda ? "cuda" : "host",
                        cuda ? job.placement().gpu().name() : null,
                        job.placement().numGpus(),
                        job.numRanks(),
                        job.topology().numRdmaRanks(),
                        setup.session().network(),
                        job.routing().maxTokens(),
                        job.hidden(),
                        job.routing().numTopk(),
                        job.routing().numExperts(),
                        sms,
                        step.rows().preReduced(),
                        Names.of(step.rows().format()),
                        step.layers(),
                        options.repeats(),
                        cuda
                                ? onGpus(setup, loop, step.layers(), options)
                                : onHost(setup, loop, step.layers(), options),
                        loop.bytesPerCall(),
                        cuda ? DriverText.get() : null,
                        build.version(),
                        build.commit(),
                        Instant.now().toString());
        setup.session().run(loop::verify);
        setup.session().dropUnusedResults();
        return record;
    }

    private static DecodeRecord.Times onHost(
            LowLatencySetup setup, DecodeLoop loop, int layers, BenchOptions options) {
        Samples calls =
                Samples.measure(
                        setup.session().team(),
                        options.warmups(),
                        options.repeats(),
                        loop.synchronous());
        return new DecodeRecord.Times(null, per(calls, layers), null, null, null, null);
    }

    private static DecodeRecord.Times onGpus(
            LowLatencySetup setup, DecodeLoop loop, int layers, BenchOptions options) {
        int warmups = options.warmups();
        int repeats = options.repeats();
        try (CudaStopwatch stopwatch = CudaStopwatch.open(setup.session())) {
            Timing bare =
                    stopwatch.measure(stopwatch.bareLaunches(loop.numCalls()), warmups, repeats);
            Timing calls = stopwatch.measure(loop, warmups, repeats);
            Timing replay = stopwatch.measureAsGraph(loop, warmups, repeats);
            return new DecodeRecord.Times(
                    per(calls.work(), layers),
                    per(calls.calls(), layers),
                    per(replay.work(), layers),
                    per(replay.calls(), layers),
                    per(calls.enqueues(), loop.numCalls()),
                    per(bare.enqueues(), loop.numCalls()));
        }
    }

    private static double per(Samples samples, int number) {
        return samples.percentileMicros(50) / number;
    }

    private static void print(Console console, DecodeRecord each) {
        DecodeRecord.Times times = each.times();
        if (times.gpuMicros() == null) {
            console.line(
                    "%4d tokens: %.1f us; %.1f bytes of garbage a call",
                    each.tokens(), times.launchedMicros(), each.bytesPerCall());
            return;
        }
        console.line(
                "%4d tokens, %3d SMs: GPU %.1f, launched by the host %.1f, as a graph %.1f (launched %.1f);"
                        + " host %.2f a call, a bare launch %.2f; %.1f bytes of garbage a call",
                each.tokens(),
                each.sms(),
                times.gpuMicros(),
                times.launchedMicros(),
                times.graphMicros(),
                times.graphLaunchedMicros(),
                times.callMicros(),
                times.bareLaunchMicros(),
                each.bytesPerCall());
    }
}
