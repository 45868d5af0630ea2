package io.deepep.bench.chaos;

import io.deepep.bench.run.Console;
import io.deepep.bench.run.Progress;
import io.deepep.planner.Mode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * Makes trials one after another, each followed by runs that nothing disturbs: with whoever is
 * left, and with a new rank in the place of one that is gone.
 */
final class Chaos {
    private final Console console;
    private final Function<RankKind, World> worlds;
    private final Map<String, Tally> tallies = new LinkedHashMap<>();
    private final Map<RankKind, Usage> leftOver = new EnumMap<>(RankKind.class);
    private final List<String> breaches = new ArrayList<>();
    private int made;

    /**
     * No trials yet.
     *
     * @param worlds makes the ranks of a model
     */
    Chaos(Console console, Function<RankKind, World> worlds) {
        this.console = console;
        this.worlds = worlds;
    }

    /** Makes trials until all are made, or the time allowed is over. */
    void run(List<Trial> trials, Duration limit) {
        long begin = System.nanoTime();
        Map<RankKind, World> open = new EnumMap<>(RankKind.class);
        try (Progress progress = Progress.of(console, "trials", trials.size())) {
            // Processes first: this one holds pipes to them, which are not its threads' doing.
            for (RankKind model : List.of(RankKind.PROCESSES, RankKind.THREADS)) {
                if (trials.stream().anyMatch(trial -> trial.model() == model)) {
                    open.put(model, begin(model));
                }
            }
            for (Trial trial : trials) {
                if (System.nanoTime() - begin > limit.toNanos()) {
                    break;
                }
                progress.at(trial.kind());
                run(trial, open.get(trial.model()));
                progress.step();
                made++;
            }
            open.forEach((model, world) -> leftOver.put(model, world.leftOver()));
        } finally {
            open.values().forEach(World::close);
        }
    }

    /** A first run of each mode, so that what stays for good is there before it is counted. */
    private World begin(RankKind model) {
        World world = worlds.apply(model);
        world.replace();
        for (Mode mode : Mode.values()) {
            quiet(Trial.quiet(mode.ordinal(), mode, model), world, "before the first trial");
        }
        return world;
    }

    private void run(Trial trial, World world) {
        int before = breaches.size();
        List<Outcome> outcomes = world.run(trial);
        Tally tally = tallies.computeIfAbsent(key(trial), ignored -> new Tally(trial));
        for (int rank = 0; rank < outcomes.size(); rank++) {
            if (rank != trial.victim()) {
                tally.count(outcomes.get(rank));
            }
        }
        Verdict.breaches(trial, outcomes).forEach(breach -> complain(trial, breach));
        Trial after = Trial.quiet(trial.seed() + Trial.ROUNDS, trial.mode(), trial.model());
        boolean verified = quiet(after, world, "after " + trial.kind());
        Usage held = world.leftOver();
        if (held.exceeds(Usage.TOLERATED)) {
            complain(trial, "ranks hold " + held + " more than after their first runs");
        }
        boolean replaced =
                world.replace() > 0 && quiet(after, world, "with a new rank after " + trial.kind());
        tally.end(verified, replaced, breaches.size() > before);
    }

    private boolean quiet(Trial trial, World world, String when) {
        List<String> wrong =
                Verdict.breaches(trial, world.run(trial)).stream()
                        .map(breach -> breach + " " + when)
                        .toList();
        wrong.forEach(breach -> complain(trial, breach));
        return wrong.isEmpty();
    }

    private void complain(Trial trial, String breach) {
        String line = trial.kind() + " " + trial + ": " + breach;
        breaches.add(line);
        console.err().println("deepep: " + line);
    }

    private static String key(Trial trial) {
        return trial.mode() + " " + trial.model() + " " + trial.action();
    }

    /** How the trials went. */
    ChaosReport report() {
        List<Tally> sorted = tallies.values().stream().sorted(Chaos::compare).toList();
        return new ChaosReport(made, sorted, leftOver, List.copyOf(breaches));
    }

    private static int compare(Tally a, Tally b) {
        return (a.ranks + a.action + a.mode).compareTo(b.ranks + b.action + b.mode);
    }
}
