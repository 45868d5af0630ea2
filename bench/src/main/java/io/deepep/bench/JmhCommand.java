package io.deepep.bench;

import io.deepep.bench.run.Console;
import io.deepep.bench.run.UsageException;
import io.deepep.cuda.CudaDriver;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.regex.PatternSyntaxException;
import org.openjdk.jmh.runner.NoBenchmarksException;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.CommandLineOptionException;
import org.openjdk.jmh.runner.options.CommandLineOptions;
import org.openjdk.jmh.runner.options.Options;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import picocli.CommandLine.Command;
import picocli.CommandLine.Unmatched;

/** Hands its arguments to JMH; {@code -h} or {@code --help} shows JMH's own help. */
@Command(
        name = "jmh",
        description =
                "Runs all JMH benchmarks or those named, with JMH's own options: deepep jmh HostBenchmark"
                        + " -f 1. Without a GPU, benchmarks of CUDA are left out.")
final class JmhCommand implements Callable<Integer> {
    /** Arguments with which JMH says something and runs nothing. */
    private static final List<String> NO_RUN = List.of("-h", "-l", "-lp", "-lprof", "-lrf");

    private final Console console;

    @Unmatched private List<String> arguments = new ArrayList<>();

    JmhCommand(Console console) {
        this.console = console;
    }

    @Override
    public Integer call() throws IOException {
        try {
            // JMH knows -h alone.
            arguments.replaceAll(each -> each.equals("--help") ? "-h" : each);
            CommandLineOptions own = own();
            if (NO_RUN.stream().anyMatch(arguments::contains)) {
                org.openjdk.jmh.Main.main(args());
            } else {
                new Runner(withoutWhatCannotRun(own)).run();
            }
        } catch (NoBenchmarksException none) {
            throw new UsageException("jmh: no such benchmark; deepep jmh -l lists all");
        } catch (PatternSyntaxException wrong) {
            throw new UsageException(
                    "jmh: %s is not a regular expression: %s"
                            .formatted(wrong.getPattern(), wrong.getDescription()));
        } catch (CommandLineOptionException | RunnerException refused) {
            throw new UsageException("jmh: " + refused.getMessage());
        }
        return Main.EXIT_PASSED;
    }

    private CommandLineOptions own() throws CommandLineOptionException {
        try {
            return new CommandLineOptions(args());
        } catch (IllegalStateException mode) { // of -bm, over two lines
            throw new CommandLineOptionException(mode.getMessage().replace('\n', ' '), mode);
        }
    }

    private String[] args() {
        return arguments.toArray(String[]::new);
    }

    private Options withoutWhatCannotRun(Options own) {
        return CudaDriver.unavailabilityReason()
                .map(
                        reason -> {
                            console.err().println("without CudaCallBenchmark: " + reason);
                            return new OptionsBuilder()
                                    .parent(own)
                                    .exclude("CudaCallBenchmark")
                                    .build();
                        })
                .orElse(own);
    }
}
