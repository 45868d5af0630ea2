package io.deepep.bench;

import io.deepep.GroupLimits;
import io.deepep.bench.launch.Launch;
import io.deepep.bench.launch.LaunchPlan;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.UsageException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Starts the ranks of this host as processes. */
@Command(
        name = "launch",
        description = {
            "Starts a command once for each rank of this host, and waits for all of them. For several hosts, run"
                    + " it on each.",
            "Each process finds RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT and"
                    + " DEEPEP_SECRET_FILE in its environment; Communicator.fromEnvironment reads them."
                    + " Output lines are prefixed with the rank."
        },
        mixinStandardHelpOptions = true,
        footer = {
            "",
            "Examples:",
            "  deepep launch -n 8 -- deepep test-intranode",
            "  deepep launch -n 8 --nnodes 2 --node-rank 0 --master-addr node0 -- java -cp app.jar Rank",
            "Exit code: 0, or that of the first process that failed; the others are then ended."
        })
final class LaunchCommand implements Callable<Integer> {
    private static final int LARGEST_PORT = 65_535;

    private final Console console;

    @Option(
            names = {"-n", "--ranks", "--nproc-per-node"},
            paramLabel = "N",
            required = true,
            description = "Ranks on each host, one process each.")
    private int ranks;

    @Option(
            names = "--nnodes",
            paramLabel = "N",
            description =
                    "Number of hosts (default: 1). Several hosts need the same secret"
                            + " in DEEPEP_SECRET_FILE or DEEPEP_SECRET.")
    private Integer numNodes;

    @Option(
            names = "--node-rank",
            paramLabel = "I",
            description = "Number of this host, from 0. Ranks are numbered host by host.")
    private Integer nodeRank;

    @Option(
            names = "--master-addr",
            paramLabel = "HOST",
            description = "Name or address of host 0 (default: MASTER_ADDR).")
    private String masterAddress;

    @Option(
            names = "--master-port",
            paramLabel = "PORT",
            description =
                    "A free port on host 0; restarts use the next ones (default: MASTER_PORT, else"
                            + " 29500).")
    private Integer masterPort;

    @Option(
            names = "--max-restarts",
            paramLabel = "N",
            defaultValue = "0",
            description =
                    "After a failure, starts all ranks again, up to N times (default:"
                            + " ${DEFAULT-VALUE}). TORCHELASTIC_RESTART_COUNT is the number of"
                            + " restarts so far.")
    private int maxRestarts;

    @Option(
            names = "--log-dir",
            paramLabel = "DIR",
            description =
                    "Also writes the output of each rank to DIR/attempt-A/rank-R.out and rank-R.err.")
    private Path logFolder;

    @Option(
            names = "--numa-binding",
            description =
                    "Runs each rank on the processors next to its GPU; without GPUs, assigns ranks to"
                            + " NUMA nodes in turn.")
    private boolean numaBinding;

    @Parameters(
            arity = "1..*",
            paramLabel = "COMMAND",
            description = "The command to start, with its arguments.")
    private List<String> command;

    LaunchCommand(Console console) {
        this.console = console;
    }

    @Override
    public Integer call() {
        UsageException.requireIn("--ranks", ranks, 1, GroupLimits.MAX_RANKS);
        if (numNodes == null) {
            requireOnlyHere();
        }
        int nodes = numNodes == null ? 1 : numNodes;
        UsageException.requireIn("--nnodes", nodes, 1, GroupLimits.MAX_RANKS);
        require(
                nodes * ranks <= GroupLimits.MAX_RANKS,
                "--nnodes=%s x --ranks=%s exceed the %s ranks that a group can have; lower one of them"
                        .formatted(nodes, ranks, GroupLimits.MAX_RANKS));
        require(maxRestarts >= 0, "--max-restarts=" + maxRestarts + " must not be negative");
        return Launch.run(
                console,
                new LaunchPlan(
                        command,
                        ranks,
                        nodes,
                        nodes == 1 && nodeRank == null ? 0 : nodeRank(nodes),
                        nodes == 1 ? Optional.empty() : Optional.of(meeting()),
                        maxRestarts,
                        Optional.ofNullable(logFolder),
                        numaBinding));
    }

    /** Else each host would run a group of its own. A script may say that the hosts are one. */
    private void requireOnlyHere() {
        boolean others =
                (nodeRank != null && nodeRank != 0) || masterAddress != null || masterPort != null;
        require(
                !others,
                "--nnodes is missing; --node-rank, --master-addr and --master-port are for several hosts");
    }

    private int nodeRank(int nodes) {
        require(nodeRank != null, "--node-rank is missing; give the number of this host, from 0");
        require(
                nodeRank >= 0 && nodeRank < nodes,
                "--node-rank=" + nodeRank + " is not from 0 to " + (nodes - 1));
        return nodeRank;
    }

    private LaunchPlan.Meeting meeting() {
        Map<String, String> environment = System.getenv();
        String address =
                masterAddress == null ? environment.getOrDefault("MASTER_ADDR", "") : masterAddress;
        require(!address.isBlank(), "--master-addr is missing; name host 0");
        require(
                !address.strip().matches("(\\[.*]|[^:]*):\\d*"),
                "%s=%s has a port behind the host; give it by --master-port"
                        .formatted(
                                masterAddress == null ? "MASTER_ADDR" : "--master-addr", address));
        int port =
                masterPort == null
                        ? port(environment.getOrDefault("MASTER_PORT", "").strip())
                        : masterPort;
        UsageException.requireIn(
                masterPort == null ? "MASTER_PORT" : "--master-port", port, 1, LARGEST_PORT);
        require(
                maxRestarts <= LARGEST_PORT - port,
                "--max-restarts=%s needs as many ports behind --master-port=%s, but %s is the last; lower one of them"
                        .formatted(maxRestarts, port, LARGEST_PORT));
        return new LaunchPlan.Meeting(address, port);
    }

    private static int port(String variable) {
        if (variable.isEmpty()) {
            return 29_500;
        }
        require(
                variable.matches("\\d{1,9}"),
                "MASTER_PORT=" + variable + " is not a number in [1, " + LARGEST_PORT + "]");
        return Integer.parseInt(variable);
    }

    private static void require(boolean right, String complaint) {
        if (!right) {
            throw new UsageException(complaint);
        }
    }
}
