package io.deepep.bench;

import io.deepep.bench.lowlatency.LowLatencyTest;
import io.deepep.bench.normal.NormalTest;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.Job;
import io.deepep.bench.run.RankSource;
import java.util.function.IntFunction;
import picocli.CommandLine.Command;

/** The test commands. */
final class TestCommand {
    private TestCommand() {}

    /** Normal mode on one node. */
    @Command(
            name = "test-intranode",
            description =
                    "Tests normal mode on one node: checks every variant of dispatch and combine, then times it.",
            mixinStandardHelpOptions = true)
    static final class Intranode extends JobCommand {
        Intranode(Console console) {
            super(console, JobOptions.normal(128), new GroupOptions());
        }

        @Override
        boolean run(Console report, Job job, IntFunction<RankSource> ranks) {
            return NormalTest.run(report, job, ranks);
        }
    }

    /** Normal mode on several nodes. */
    @Command(
            name = "test-internode",
            description =
                    "Tests normal mode on several nodes: checks every variant of dispatch and combine, then times it.",
            mixinStandardHelpOptions = true)
    static final class Internode extends JobCommand {
        Internode(Console console) {
            super(console, JobOptions.normal(64), new GroupOptions.AnyNodes(2));
        }

        @Override
        boolean run(Console report, Job job, IntFunction<RankSource> ranks) {
            return NormalTest.run(report, job, ranks);
        }
    }

    /** Low-latency mode. */
    @Command(
            name = "test-low-latency",
            description =
                    "Tests low-latency mode: checks every variant of formats, hooks and copies, then times it.",
            mixinStandardHelpOptions = true)
    static final class LowLatency extends JobCommand {
        LowLatency(Console console) {
            super(console, JobOptions.lowLatency(), new GroupOptions.AnyNodes(1));
        }

        @Override
        boolean run(Console report, Job job, IntFunction<RankSource> ranks) {
            return LowLatencyTest.run(report, job, ranks);
        }
    }
}
