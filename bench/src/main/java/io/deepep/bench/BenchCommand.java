package io.deepep.bench;

import io.deepep.bench.lowlatency.DecodeBench;
import io.deepep.bench.lowlatency.LowLatencyBench;
import io.deepep.bench.measure.BenchOptions;
import io.deepep.bench.normal.NormalBench;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.LaunchedGroup;
import io.deepep.bench.run.UsageException;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** The parent of the measuring commands. */
@Command(
        name = "bench",
        description = "Verifies, then measures each operation.",
        mixinStandardHelpOptions = true,
        synopsisSubcommandLabel = "normal|low-latency|decode")
final class BenchCommand implements Runnable {
    @Spec private CommandSpec spec;

    @Override
    public void run() {
        throw new ParameterException(
                spec.commandLine(),
                "bench: no mode given; use bench normal, bench low-latency or bench decode");
    }

    /** Normal mode. */
    @Command(
            name = "normal",
            description = "Measures normal mode.",
            mixinStandardHelpOptions = true,
            sortOptions = false)
    static final class Normal implements Callable<Integer> {
        private final Console console;

        @Mixin private JobOptions options = new JobOptions();

        @Mixin private GroupOptions.AnyNodes group = new GroupOptions.AnyNodes();

        @Mixin private BenchOptions bench = new BenchOptions();

        @Mixin private FlightRecorderOption recorder = new FlightRecorderOption();

        Normal(Console console) {
            this.console = console;
        }

        @Override
        public Integer call() throws Exception {
            LaunchedGroup.refuse("bench normal");
            bench.validate();
            return TestCommand.exitCode(
                    recorder.record(
                            () ->
                                    options.run(
                                            group,
                                            ShapeDefaults.BENCH_NORMAL,
                                            job -> NormalBench.run(console, job, bench))));
        }
    }

    /** Low-latency mode. */
    @Command(
            name = "low-latency",
            description = "Measures low-latency mode.",
            mixinStandardHelpOptions = true,
            sortOptions = false)
    static final class LowLatency implements Callable<Integer> {
        private final Console console;

        @Mixin private JobOptions options = new JobOptions();

        @Mixin private GroupOptions.AnyNodes group = new GroupOptions.AnyNodes();

        @Mixin private BenchOptions bench = new BenchOptions();

        @Mixin private FlightRecorderOption recorder = new FlightRecorderOption();

        @Mixin private MeasuredTokens tokens = new MeasuredTokens();

        LowLatency(Console console) {
            this.console = console;
        }

        @Override
        public Integer call() throws Exception {
            LaunchedGroup.refuse("bench low-latency");
            bench.validate();
            return TestCommand.exitCode(
                    recorder.record(
                            () ->
                                    options.run(
                                            group,
                                            ShapeDefaults.BENCH_LOW_LATENCY,
                                            job ->
                                                    LowLatencyBench.run(
                                                            console, job, tokens.of(job), bench))));
        }
    }

    /** The loop of a decoding engine. */
    @Command(
            name = "decode",
            description = {
                "Measures low-latency mode as a decoding engine uses it: the layers of a model, each a dispatch",
                "and a combine, enqueued one after the other; on GPUs also replayed as a graph."
            },
            mixinStandardHelpOptions = true,
            sortOptions = false)
    static final class Decode implements Callable<Integer> {
        private final Console console;

        @Mixin private JobOptions options = new JobOptions();

        @Mixin private GroupOptions.AnyNodes group = new GroupOptions.AnyNodes();

        @Mixin private BenchOptions bench = new BenchOptions();

        @Mixin private MeasuredTokens tokens = new MeasuredTokens();

        @Option(
                names = "--layers",
                paramLabel = "N",
                description = "Layers of a step (default: ${DEFAULT-VALUE}).")
        private int layers = 60;

        Decode(Console console) {
            this.console = console;
        }

        @Override
        public Integer call() {
            LaunchedGroup.refuse("bench decode");
            bench.validate();
            if (layers < 1) {
                throw new UsageException("--layers=" + layers + " must be at least 1");
            }
            return TestCommand.exitCode(
                    options.run(
                            group,
                            ShapeDefaults.BENCH_LOW_LATENCY,
                            job -> DecodeBench.run(console, job, tokens.of(job), layers, bench)));
        }
    }
}
