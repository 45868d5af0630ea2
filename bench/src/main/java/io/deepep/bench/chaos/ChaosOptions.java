package io.deepep.bench.chaos;

import io.deepep.bench.run.Console;
import io.deepep.bench.run.UsageException;
import io.deepep.planner.Mode;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * What a chaos run is to do.
 *
 * @param run placement and patience of its ranks
 * @param numRanks of the whole group
 * @param from the first trial that is made, of those that the seed draws, from 0
 * @param trials how many
 * @param limit after which no trial begins
 * @param numGroups that make trials side by side
 * @param seed of all of them
 * @param way in which new processes come in the place of killed ones
 * @param rankArguments of the command line that starts a rank's process with the same {@code run}
 * @param others the options beside those that choose trials of a seed, as they were given
 */
public record ChaosOptions(
        RankRun run,
        int numRanks,
        int from,
        int trials,
        Duration limit,
        int numGroups,
        long seed,
        List<Mode> modes,
        List<RankKind> models,
        List<Action> actions,
        Return way,
        List<String> rankArguments,
        List<String> others) {
    /** Files that a process may open which is to use them up, so that it can in a moment. */
    private static final int MOST_FILES = 512;

    /** The options that make so many trials, from one on, as this run makes them. */
    public String repeating(int first, int number) {
        String own = "--seed %s --from %s --trials %s".formatted(seed, first, number);
        return Stream.concat(Stream.of(own), others.stream()).collect(Collectors.joining(" "));
    }

    /**
     * Makes the trials, and tells how they went.
     *
     * @param ifEnded is told how they went so far, if the process is asked to end meanwhile
     * @throws UsageException if none could be begun
     */
    public ChaosReport make(Console console, Consumer<ChaosReport> ifEnded) {
        List<Trial> drawn = Trial.draw(seed, from + trials, numRanks, modes, models, actions);
        if (drawn.isEmpty()) {
            throw new UsageException(
                    "none of these actions is possible with threads; add processes to --ranks-are, or throw,"
                            + " leave or slow to --actions");
        }
        List<String> command = command();
        Chaos chaos =
                new Chaos(
                        console,
                        way,
                        place -> repeating(from + place, 1),
                        model ->
                                new World(
                                        model,
                                        run,
                                        numRanks,
                                        seat -> ChaosProcess.start(command, seat)));
        Thread end = Thread.ofPlatform().unstarted(() -> tellAndEnd(chaos, ifEnded));
        Runtime.getRuntime().addShutdownHook(end);
        try {
            chaos.run(drawn.subList(from, from + trials), limit, numGroups);
        } finally {
            withdraw(end);
        }
        return chaos.report();
    }

    /** A rank that is stopped does not see that its input ends: it must be killed. */
    private static void tellAndEnd(Chaos chaos, Consumer<ChaosReport> ifEnded) {
        try {
            ifEnded.accept(chaos.interrupt());
        } finally {
            ProcessHandle.current().descendants().forEach(ProcessHandle::destroyForcibly);
        }
    }

    private static void withdraw(Thread end) {
        try {
            Runtime.getRuntime().removeShutdownHook(end);
        } catch (IllegalStateException ending) {
            while (true) {
                LockSupport.park(); // it reports, and the process ends
            }
        }
    }

    /** This very Java, with this process's options, as a rank. */
    private List<String> command() {
        List<String> command = new ArrayList<>();
        if (actions.contains(Action.STARVE)) {
            command.addAll(
                    List.of(
                            "/bin/sh",
                            "-c",
                            "ulimit -n " + MOST_FILES + "; exec \"$@\"",
                            "chaos-rank"));
        }
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
        command.addAll(List.of("-cp", System.getProperty("java.class.path")));
        command.addAll(rankArguments);
        return command;
    }
}
