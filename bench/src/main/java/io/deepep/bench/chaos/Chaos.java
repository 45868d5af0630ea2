package io.deepep.bench.chaos;

import io.deepep.bench.run.Console;
import io.deepep.bench.run.Progress;
import io.deepep.bench.run.UsageException;
import io.deepep.bench.text.Names;
import io.deepep.planner.Mode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.function.IntFunction;

/**
 * Makes trials, each followed by runs that nothing disturbs: with whoever is left, and with a new
 * rank in the place of one that is gone. Several groups make trials side by side, one after another
 * each, and take them in order.
 */
final class Chaos {
    /** So many processors start a group in the time that ranks wait for each other. */
    private static final int PROCESSORS_TO_BEGIN = 8;

    private final Semaphore beginning =
            new Semaphore(
                    Math.max(1, Runtime.getRuntime().availableProcessors() / PROCESSORS_TO_BEGIN));

    private final Console console;
    private final Return way;
    private final IntFunction<String> repeating;
    private final Function<RankKind, World> worlds;
    private final Map<String, Tally> tallies = new TreeMap<>();
    private final Map<RankKind, Usage> leftOver = new EnumMap<>(RankKind.class);
    private final List<String> breaches = new ArrayList<>();

    /** The trials that were made, by their places among those asked for. */
    private final BitSet made = new BitSet();

    /** The rest is of a process that ends. */
    private boolean interrupted;

    /** Why the ranks of a group, and then of all, make no more trials; null if they do. */
    private UsageException failure;

    /**
     * No trials yet.
     *
     * @param way in which new ranks come
     * @param repeating the options that repeat the trial at a place among those asked for
     * @param worlds makes the ranks of a model
     */
    Chaos(
            Console console,
            Return way,
            IntFunction<String> repeating,
            Function<RankKind, World> worlds) {
        this.console = console;
        this.way = way;
        this.repeating = repeating;
        this.worlds = worlds;
    }

    /**
     * Makes trials in so many groups until all are made, the time allowed is over, or a group
     * cannot go on.
     *
     * @throws UsageException if none could be begun
     */
    void run(List<Trial> trials, Duration limit, int numGroups) {
        long end = System.nanoTime() + limit.toNanos();
        AtomicInteger next = new AtomicInteger();
        ExecutorService groups = Executors.newFixedThreadPool(numGroups);
        try (Progress progress = Progress.of(console, "trials", trials.size())) {
            List<Future<?>> all = new ArrayList<>();
            for (int i = 0; i < numGroups; i++) {
                all.add(groups.submit(() -> group(trials, next, end, progress)));
            }
            for (Future<?> group : all) {
                group.get();
            }
            if (hasFailed() && next.get() == 0) {
                throw failure;
            }
        } catch (ExecutionException defect) {
            if (defect.getCause() instanceof RuntimeException known) {
                throw known;
            }
            throw new IllegalStateException(defect.getCause());
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while ranks were running", interrupted);
        } finally {
            groups.shutdownNow();
            groups.close();
        }
    }

    /** Takes trials as long as there are any. */
    private void group(List<Trial> trials, AtomicInteger next, long end, Progress progress) {
        Map<RankKind, World> open = new EnumMap<>(RankKind.class);
        try {
            beginning.acquireUninterruptibly();
            try {
                for (RankKind model : RankKind.values()) {
                    if (trials.stream().anyMatch(trial -> trial.model() == model)) {
                        open.put(model, begin(model));
                    }
                }
            } finally {
                beginning.release();
            }
            while (System.nanoTime() < end && !hasFailed()) {
                int taken = next.getAndIncrement();
                if (taken >= trials.size()) {
                    break;
                }
                Trial trial = trials.get(taken);
                run(taken, trial, open.get(trial.model()));
                step(taken, trial, progress);
            }
            open.forEach(this::noteLeftOver);
        } catch (UsageException cannotGoOn) {
            fail(cannotGoOn);
        } finally {
            open.values().forEach(World::close);
        }
    }

    private synchronized void fail(UsageException cannotGoOn) {
        failure = failure == null ? cannotGoOn : failure;
    }

    private synchronized boolean hasFailed() {
        return failure != null;
    }

    private synchronized void step(int place, Trial trial, Progress progress) {
        progress.at(trial.kind());
        progress.step();
        made.set(place);
    }

    private synchronized void noteLeftOver(RankKind model, World world) {
        leftOver.merge(model, world.leftOver(), Usage::max);
    }

    /** A first run of each mode, so that what stays for good is there before it is counted. */
    private World begin(RankKind model) {
        World world = worlds.apply(model);
        try {
            world.replace();
            for (Mode mode : Mode.values()) {
                first(Trial.quiet(mode.ordinal(), mode, model), world);
            }
            return world;
        } catch (RuntimeException failure) {
            world.close();
            throw failure;
        }
    }

    /**
     * Where ranks get errors though nothing disturbs them, no trial would tell anything.
     *
     * @throws UsageException if they do, with the first of them
     */
    private void first(Trial trial, World world) {
        List<Outcome> outcomes = world.run(trial);
        for (int rank = 0; rank < outcomes.size(); rank++) {
            Outcome outcome = outcomes.get(rank);
            if (outcome.kind() == Outcome.Kind.FAILED || outcome.kind() == Outcome.Kind.NAMED) {
                throw new UsageException(
                        "chaos: before the first trial, in %s mode, rank %s of the %s %s"
                                .formatted(
                                        Names.of(trial.mode()),
                                        rank,
                                        Names.of(trial.model()),
                                        outcome));
            }
        }
        complainOf(0, trial, outcomes, "before the first trial");
    }

    private void run(int place, Trial trial, World world) {
        boolean inPlace = way == Return.REPLACE && trial.allowsReplacement();
        List<Outcome> outcomes = inPlace ? world.runReplacing(trial) : world.run(trial);
        Outcome successor = inPlace ? outcomes.removeLast() : Outcome.PASSED;
        List<String> broken = Verdict.breaches(trial, outcomes);
        if (successor.kind() != Outcome.Kind.PASSED) {
            broken.add("the new rank " + trial.victim() + " " + successor);
        }
        broken.forEach(breach -> complain(place, trial, breach));
        Trial after = trial.after();
        boolean verified = quiet(place, after, world, "after " + trial.kind());
        Usage held = world.leftOver();
        boolean leaks = held.exceeds(Usage.TOLERATED);
        if (leaks) {
            complain(place, trial, "ranks hold " + held + " more than after their first runs");
        }
        boolean lacking = world.replace() > 0;
        boolean replaced =
                lacking && quiet(place, after, world, "with a new rank after " + trial.kind());
        boolean kept = broken.isEmpty() && verified && !leaks && replaced == lacking;
        count(trial, outcomes, verified, replaced, inPlace && broken.isEmpty(), !kept);
    }

    private synchronized void count(
            Trial trial,
            List<Outcome> outcomes,
            boolean verified,
            boolean replaced,
            boolean inPlace,
            boolean broken) {
        Tally tally = tallies.computeIfAbsent(Tally.name(trial), ignored -> new Tally(trial));
        for (int rank = 0; rank < outcomes.size(); rank++) {
            if (rank != trial.victim()) {
                tally.count(outcomes.get(rank));
            }
        }
        tally.end(verified, replaced, inPlace, broken);
    }

    private boolean quiet(int place, Trial trial, World world, String when) {
        return complainOf(place, trial, world.run(trial), when);
    }

    /** Whether there is nothing to complain of. */
    private boolean complainOf(int place, Trial trial, List<Outcome> outcomes, String when) {
        List<String> wrong =
                Verdict.breaches(trial, outcomes).stream()
                        .map(breach -> breach + " " + when)
                        .toList();
        wrong.forEach(breach -> complain(place, trial, breach));
        return wrong.isEmpty();
    }

    private synchronized void complain(int place, Trial trial, String breach) {
        if (interrupted) {
            return;
        }
        String line =
                "%s %s: %s; again: %s"
                        .formatted(trial.kind(), trial, breach, repeating.apply(place));
        breaches.add(line);
        console.complain(line);
    }

    /** The process was asked to end, and so perhaps were the ranks': how trials went until then. */
    synchronized ChaosReport interrupt() {
        interrupted = true;
        return report();
    }

    /** How the trials went. */
    synchronized ChaosReport report() {
        return new ChaosReport(
                made.cardinality(),
                made.nextClearBit(0),
                List.copyOf(tallies.values()),
                leftOver,
                List.copyOf(breaches),
                hasFailed() ? failure.getMessage() : null);
    }
}
