package io.deepep.bench;

import io.deepep.bench.lowlatency.LowLatencyTest;
import io.deepep.bench.normal.NormalTest;
import io.deepep.bench.run.Console;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** The test commands, with ranks that are threads, or processes if a launcher started several. */
abstract class TestCommand implements Callable<Integer> {
    private final Console console;
    private final ShapeDefaults defaults;
    private final JobOptions.Work cases;

    @Mixin private JobOptions options;

    @Mixin private FlightRecorderOption recorder = new FlightRecorderOption();

    @Mixin private GroupOptions group;

    TestCommand(
            Console console,
            GroupOptions group,
            SmsOptions sms,
            ShapeDefaults defaults,
            JobOptions.Work cases) {
        this.console = console;
        this.options = new JobOptions(sms);
        this.group = group;
        this.defaults = defaults;
        this.cases = cases;
    }

    static int exitCode(boolean allPassed) {
        return allPassed ? Main.EXIT_PASSED : Main.EXIT_FAILED;
    }

    @Override
    public final Integer call() throws Exception {
        return exitCode(options.runLaunched(console, recorder, group, defaults, cases));
    }

    /** Normal mode on one node. */
    @Command(
            name = "test-intranode",
            description =
                    "Tests normal mode on one node: checks every variant of dispatch and combine, then times it.",
            mixinStandardHelpOptions = true)
    static final class Intranode extends TestCommand {
        Intranode(Console console) {
            super(
                    console,
                    new GroupOptions.OneNode(),
                    new SmsOptions.Normal(),
                    ShapeDefaults.INTRANODE,
                    NormalTest::run);
        }
    }

    /** Normal mode on several nodes. */
    @Command(
            name = "test-internode",
            description =
                    "Tests normal mode on several nodes: checks every variant of dispatch and combine, then times it.",
            mixinStandardHelpOptions = true)
    static final class Internode extends TestCommand {
        Internode(Console console) {
            super(
                    console,
                    new GroupOptions.AnyNodes(2),
                    new SmsOptions.Normal(),
                    ShapeDefaults.INTERNODE,
                    NormalTest::run);
        }
    }

    /** Low-latency mode. */
    @Command(
            name = "test-low-latency",
            description =
                    "Tests low-latency mode: checks every variant of formats, hooks and copies, then times it.",
            mixinStandardHelpOptions = true)
    static final class LowLatency extends TestCommand {
        LowLatency(Console console) {
            super(
                    console,
                    new GroupOptions.AnyNodes(),
                    new SmsOptions.LowLatency(),
                    ShapeDefaults.LOW_LATENCY,
                    LowLatencyTest::run);
        }
    }
}
