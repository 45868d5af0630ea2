package io.deepep.bench;

import io.deepep.bench.launch.Launch;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.UsageException;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Starts the ranks of one host as processes. */
@Command(
        name = "launch",
        description = {
            "Starts a command once for each rank of this host and waits for all.",
            "Each process finds RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT and"
                    + " DEEPEP_SECRET_FILE in its environment; Communicator.fromEnvironment reads them. Its lines are"
                    + " printed behind its rank."
        },
        mixinStandardHelpOptions = true,
        sortOptions = false,
        footer = {
            "",
            "Example: deepep launch -n 8 -- deepep test-intranode",
            "Exit code: 0, or that of the first process that failed; the others are ended then."
        })
final class LaunchCommand implements Callable<Integer> {
    private final Console console;

    @Option(
            names = {"-n", "--ranks"},
            paramLabel = "N",
            required = true,
            description = "Ranks, one process each.")
    private int ranks;

    @Parameters(
            arity = "1..*",
            paramLabel = "COMMAND",
            description = "What to start, with its arguments.")
    private List<String> command;

    LaunchCommand(Console console) {
        this.console = console;
    }

    @Override
    public Integer call() {
        if (ranks < 1) {
            throw new UsageException("--ranks=" + ranks + " must be at least 1");
        }
        return Launch.run(console, ranks, command);
    }
}
