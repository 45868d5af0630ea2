package io.deepep.bench;

import io.deepep.bench.lowlatency.LowLatencyBench;
import io.deepep.bench.measure.BenchOptions;
import io.deepep.bench.normal.NormalBench;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.LaunchedGroup;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** The parent of the measuring commands. */
@Command(
        name = "bench",
        description = "Verifies, then measures each operation.",
        mixinStandardHelpOptions = true,
        synopsisSubcommandLabel = "normal|low-latency")
final class BenchCommand implements Runnable {
    @Spec private CommandSpec spec;

    @Override
    public void run() {
        throw new ParameterException(
                spec.commandLine(), "bench: no mode given; use bench normal or bench low-latency");
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

        Normal(Console console) {
            this.console = console;
        }

        @Override
        public Integer call() {
            bench.validate();
            try (LaunchedGroup launched = LaunchedGroup.join()) {
                Console report = launched.console(console);
                return TestCommand.exitCode(
                        options.run(
                                group,
                                ShapeDefaults.BENCH_NORMAL,
                                job -> NormalBench.run(report, job, bench, launched::ranks)));
            }
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

        LowLatency(Console console) {
            this.console = console;
        }

        @Override
        public Integer call() {
            LaunchedGroup.refuse("bench low-latency");
            bench.validate();
            return TestCommand.exitCode(
                    options.run(
                            group,
                            ShapeDefaults.BENCH_LOW_LATENCY,
                            job -> LowLatencyBench.run(console, job, bench)));
        }
    }
}
