package io.deepep.bench;

import io.deepep.EpTopology;
import io.deepep.GroupLimits;
import io.deepep.Network;
import io.deepep.bench.chaos.Action;
import io.deepep.bench.chaos.ChaosOptions;
import io.deepep.bench.chaos.ChaosReport;
import io.deepep.bench.chaos.RankKind;
import io.deepep.bench.chaos.RankProgram;
import io.deepep.bench.chaos.RankRun;
import io.deepep.bench.chaos.Return;
import io.deepep.bench.measure.BenchReport;
import io.deepep.bench.measure.Build;
import io.deepep.bench.run.Console;
import io.deepep.bench.run.LaunchedGroup;
import io.deepep.bench.run.OutputFile;
import io.deepep.bench.run.Placement;
import io.deepep.bench.run.UsageException;
import io.deepep.bench.text.Names;
import io.deepep.buffer.memory.NetworkChoice;
import io.deepep.planner.Mode;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** Disturbs ranks and sees what becomes of the others. */
@Command(
        name = "chaos",
        description = {
            "Kills, stops, slows, starves and breaks ranks at every phase of a verified workload.",
            "The others must get right results or an error that names the victim, and make verified"
                    + " rounds afterwards: without the dead rank, and with a new process in its place."
        },
        mixinStandardHelpOptions = true,
        footer = {
            "",
            "Exit code: 0 if every promise was kept, 1 if not, or if ranks could not be replaced. Each breach is"
                    + " printed with the options that repeat its trial."
        })
final class ChaosCommand implements Callable<Integer> {
    private static final int MOST_TRIALS = 1_000_000;
    private static final int MOST_MINUTES = 100_000;
    private static final int MOST_GROUPS = 64;

    /** They choose trials of a seed, or would write over what a run has told. */
    private static final List<String> OF_ONE_RUN =
            List.of("--seed", "--from", "--trials", "--json");

    private final Console console;

    @Spec private CommandSpec spec;

    @Mixin private Ranks ranks = new Ranks();

    @Option(
            names = "--ranks",
            paramLabel = "N",
            description = "Ranks of the group (default: ${DEFAULT-VALUE}).")
    private int numRanks = 4;

    @Option(
            names = "--trials",
            paramLabel = "N",
            description = "How often a rank is disturbed (default: ${DEFAULT-VALUE}).")
    private int trials = 40;

    @Option(
            names = "--from",
            paramLabel = "N",
            description =
                    "The first trial of the seed to run, counted from 0; continues where another run"
                            + " ended (default: ${DEFAULT-VALUE}).")
    private int from;

    @Option(
            names = "--minutes",
            paramLabel = "N",
            description = "Begins no new trial after N minutes (default: no limit).")
    private Integer minutes;

    @Option(
            names = "--groups",
            paramLabel = "N",
            description =
                    "Groups of ranks that run trials in parallel (default: enough to keep the"
                            + " processors of this machine busy; one on GPUs).")
    private Integer groups;

    @Option(
            names = "--seed",
            paramLabel = "N",
            description = "Seed of all trials (default: a new one, which is printed).")
    private Long seed;

    @Option(
            names = "--modes",
            paramLabel = "NAME",
            split = ",",
            description = "Modes to test: normal, low-latency (default: both).")
    private List<Mode> modes = List.of(Mode.values());

    @Option(
            names = "--ranks-are",
            paramLabel = "NAME",
            split = ",",
            description = "What ranks are: threads, processes (default: both).")
    private List<RankKind> models = List.of(RankKind.values());

    @Option(
            names = "--actions",
            paramLabel = "NAME",
            split = ",",
            description =
                    "What is done to a rank: kill, throw, leave, pause, freeze, slow, starve (default: all).")
    private List<Action> actions = List.of(Action.values());

    @Option(
            names = "--return",
            paramLabel = "NAME",
            description =
                    "How a new process takes the place of a killed one: group (all ranks open new"
                            + " buffers in a new group) or replace (the others keep their buffers"
                            + " open, where they have them open; otherwise as group) (default: group).")
    private Return way = Return.GROUP;

    @Option(names = "--json", paramLabel = "FILE", description = "Also writes the counts as JSON.")
    private Path json;

    ChaosCommand(Console console) {
        this.console = console;
    }

    /** What the command and the processes of its ranks are both told. */
    static final class Ranks {
        @Spec private CommandSpec given;

        @Option(
                names = "--backend",
                paramLabel = "NAME",
                description = "host or cuda (default: host).")
        private BackendName backend = BackendName.HOST;

        @Mixin private GpuOption gpus = new GpuOption();

        @Option(
                names = "--ranks-per-node",
                paramLabel = "N",
                description =
                        "Ranks of each virtual node; a group that lacks some ranks has one rank per"
                                + " node (default: all ranks on one node).")
        private Integer ranksPerNode;

        @Mixin private NetworkOptions network = new NetworkOptions();

        @Option(
                names = "--timeout-millis",
                paramLabel = "N",
                description = "How long a rank waits for another (default: ${DEFAULT-VALUE}).")
        private long timeoutMillis = 4000;

        RankRun run(int numRanks, Network between) {
            UsageException.requireIn("--timeout-millis", timeoutMillis, 100, 1_000_000);
            UsageException.requireIn(
                    "--ranks-per-node",
                    ranksPerNode,
                    1,
                    Math.min(numRanks, EpTopology.MAX_NVL_RANKS));
            int ofNode = ranksPerNode == null ? numRanks : ranksPerNode;
            if (ofNode > EpTopology.MAX_NVL_RANKS) {
                throw new UsageException(
                        "--ranks=%s exceeds the %s that a node can have; give --ranks-per-node"
                                .formatted(numRanks, EpTopology.MAX_NVL_RANKS));
            }
            if (numRanks % ofNode != 0) {
                throw new UsageException(
                        "--ranks-per-node=%s does not divide the %s ranks"
                                .formatted(ofNode, numRanks));
            }
            return new RankRun(placement(), ofNode, between, Duration.ofMillis(timeoutMillis));
        }

        /**
         * What connects the nodes of a group.
         *
         * @throws UsageException if it was named, and nothing would go over it
         */
        Network network(int numRanks) {
            Network named = network.network();
            if (named instanceof Network.Auto) {
                return NetworkChoice.chosen(named, true);
            }
            String option = "--network=" + NetworkOptions.nameOf(named);
            if (backend != BackendName.CUDA) {
                throw new UsageException(option + " connects GPUs; give --backend=cuda too");
            }
            if (ranksPerNode == null || ranksPerNode == numRanks) {
                throw new UsageException(
                        option
                                + " connects nodes, but all ranks are on one; give --ranks-per-node, less than --ranks="
                                + numRanks);
            }
            return named;
        }

        /** For a rank's own process, which is told the ranks with each run. */
        RankRun ofRank() {
            return run(ranksPerNode == null ? 1 : ranksPerNode, network.network());
        }

        private Placement placement() {
            if (backend == BackendName.CUDA) {
                return gpus.cuda();
            }
            if (backend == BackendName.AUTO) {
                throw new UsageException(
                        "--backend=auto is not possible with chaos; give host or cuda");
            }
            return gpus.host();
        }

        /** What was given, for the command line of a rank's process. */
        List<String> arguments(RankRun run) {
            List<String> arguments = new ArrayList<>(NetworkOptions.arguments(given));
            if (ranksPerNode == null) {
                arguments.add("--ranks-per-node=" + run.ranksPerNode());
            }
            return arguments;
        }
    }

    /** One rank that is a process, as the command starts it. */
    @Command(name = "chaos-rank", hidden = true)
    static final class Rank implements Callable<Integer> {
        @Mixin private Ranks ranks = new Ranks();

        @Override
        public Integer call() throws IOException {
            new RankProgram(ranks.ofRank(), System.out).follow();
            return Main.EXIT_PASSED;
        }
    }

    @Override
    public Integer call() {
        LaunchedGroup.refuse("chaos");
        UsageException.requireIn("--ranks", numRanks, 2, GroupLimits.MAX_RANKS);
        UsageException.requireIn("--trials", trials, 1, MOST_TRIALS);
        UsageException.requireIn("--from", from, 0, MOST_TRIALS);
        UsageException.requireIn("--minutes", minutes, 1, MOST_MINUTES);
        UsageException.requireIn("--groups", groups, 1, MOST_GROUPS);
        requireSome("--modes", modes);
        requireSome("--ranks-are", models);
        requireSome("--actions", actions);
        OutputFile.require("--json", json);
        Network network = ranks.network(numRanks);
        requireAllowed(network);
        RankRun run = ranks.run(numRanks, network);
        long first = seed == null ? System.nanoTime() : seed;
        console.line(
                "%s, %d ranks, %d to a node%s, time-out %s ms, seed %d",
                run.placement().describe(),
                numRanks,
                run.ranksPerNode(),
                run.usesNetwork(numRanks) ? " over " + NetworkOptions.nameOf(network) : "",
                run.timeout().toMillis(),
                first);
        ChaosOptions options =
                new ChaosOptions(
                        run,
                        numRanks,
                        from,
                        trials,
                        Duration.ofMinutes(minutes == null ? MOST_MINUTES : minutes),
                        numGroups(run),
                        first,
                        modes,
                        models,
                        actions,
                        way,
                        rank(run),
                        others());
        ChaosReport report =
                options.make(
                        console,
                        soFar -> {
                            print(options, soFar, "interrupted");
                            console.flush();
                        });
        print(
                options,
                report,
                report.failure() == null ? minutes + " minutes were over" : report.failure());
        return report.isGood() ? Main.EXIT_PASSED : Main.EXIT_FAILED;
    }

    /** Refuses trials that need what the network cannot do. */
    private void requireAllowed(Network network) {
        String option = "--network=" + NetworkOptions.nameOf(network);
        if (models.contains(RankKind.THREADS) && !NetworkChoice.allowsThreads(network)) {
            throw new UsageException(
                    option + " needs a process for each rank; give --ranks-are=processes");
        }
        if (actions.contains(Action.KILL) && !NetworkChoice.outlivesRanks(network)) {
            String others =
                    Stream.of(Action.values())
                            .filter(action -> action != Action.KILL)
                            .map(Names::of)
                            .collect(Collectors.joining(","));
            throw new UsageException(
                    option
                            + " does not let processes continue when one is killed; leave kill out: --actions="
                            + others);
        }
    }

    private List<String> others() {
        return NetworkOptions.arguments(spec).stream()
                .filter(each -> !OF_ONE_RUN.contains(each.substring(0, each.indexOf('='))))
                .toList();
    }

    private void print(ChaosOptions options, ChaosReport report, String whyNotAll) {
        console.print(report.text());
        console.line("%d trials, %d promises broken", report.made(), report.breaches().size());
        if (report.made() < trials) {
            console.line(
                    "%s; to go on: %s",
                    whyNotAll,
                    options.repeating(from + report.inOrder(), trials - report.inOrder()));
        }
        if (json != null) {
            write(options, report);
        }
    }

    /** A trial waits for most of its time: a processor serves the ranks of a group. */
    private int numGroups(RankRun run) {
        if (groups != null) {
            return groups;
        }
        int processors = Runtime.getRuntime().availableProcessors();
        return run.placement().isCuda() ? 1 : Math.clamp(processors / 2, 1, MOST_GROUPS);
    }

    private static void requireSome(String option, List<?> chosen) {
        if (chosen.isEmpty()) {
            throw new UsageException(option + " names nothing; leave it out for all");
        }
    }

    private List<String> rank(RankRun run) {
        List<String> command = new ArrayList<>(List.of(Main.class.getName(), "chaos-rank"));
        command.addAll(ranks.arguments(run));
        return command;
    }

    private void write(ChaosOptions options, ChaosReport report) {
        RankRun run = options.run();
        Map<String, Object> record = new LinkedHashMap<>();
        record.put("commit", Build.current().commit());
        record.put("seed", options.seed());
        record.put("from", from);
        record.put("trials", report.made());
        record.put("ranks", numRanks);
        if (run.usesNetwork(numRanks)) {
            record.put("network", NetworkOptions.nameOf(run.network()));
        }
        record.put("report", report);
        BenchReport.write(json, record);
    }
}
