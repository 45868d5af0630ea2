package io.deepep.bench;

import io.deepep.bench.lowlatency.LowLatencyTest;
import io.deepep.bench.normal.NormalTest;
import io.deepep.bench.run.Console;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** The test commands. */
abstract class TestCommand implements Callable<Integer> {
    final Console console;

    @Mixin JobOptions options = new JobOptions();

    @Mixin FlightRecorderOption recorder = new FlightRecorderOption();

    TestCommand(Console console) {
        this.console = console;
    }

    static int exitCode(boolean allPassed) {
        return allPassed ? Main.EXIT_PASSED : Main.EXIT_FAILED;
    }

    /** Tests with ranks that are threads, or processes if a launcher started several. */
    final int run(GroupOptions group, ShapeDefaults defaults, JobOptions.Work cases)
            throws Exception {
        return exitCode(options.runLaunched(console, recorder, group, defaults, cases));
    }

    /** Normal mode on one node. */
    @Command(
            name = "test-intranode",
            description =
                    "Normal mode on one node: every variant of dispatch and combine, checked, then timed.",
            mixinStandardHelpOptions = true,
            sortOptions = false)
    static final class Intranode extends TestCommand {
        @Mixin private GroupOptions.OneNode group = new GroupOptions.OneNode();

        Intranode(Console console) {
            super(console);
        }

        @Override
        public Integer call() throws Exception {
            return run(group, ShapeDefaults.INTRANODE, NormalTest::run);
        }
    }

    /** Normal mode on several nodes. */
    @Command(
            name = "test-internode",
            description =
                    "Normal mode on several nodes: every variant of dispatch and combine, checked, then timed.",
            mixinStandardHelpOptions = true,
            sortOptions = false)
    static final class Internode extends TestCommand {
        @Mixin private GroupOptions.AnyNodes group = new GroupOptions.AnyNodes(2);

        Internode(Console console) {
            super(console);
        }

        @Override
        public Integer call() throws Exception {
            return run(group, ShapeDefaults.INTERNODE, NormalTest::run);
        }
    }

    /** Low-latency mode. */
    @Command(
            name = "test-low-latency",
            description =
                    "Low-latency mode: every format, hook and copy variant, checked, then timed.",
            mixinStandardHelpOptions = true,
            sortOptions = false)
    static final class LowLatency extends TestCommand {
        @Mixin private GroupOptions.AnyNodes group = new GroupOptions.AnyNodes();

        LowLatency(Console console) {
            super(console);
        }

        @Override
        public Integer call() throws Exception {
            return run(group, ShapeDefaults.LOW_LATENCY, LowLatencyTest::run);
        }
    }
}
